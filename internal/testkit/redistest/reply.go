package redistest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

const (
	// maxBulk is the longest accepted string: twice the default limit of Redis.
	maxBulk = 1 << 30

	// maxItems is the largest accepted count of an aggregate.
	maxItems = 1 << 40

	// pushType marks a message that is no reply.
	pushType = '>'
)

// errMalformed is a violation of the protocol, as opposed to the end of a connection.
var errMalformed = errors.New("malformed resp")

// skipReply reads exactly one complete reply of RESP2 or RESP3 from r, and appends it
// unchanged to raw. It returns the type byte of the reply: '>' is a push message, which is
// no reply to a command.
//
// It counts values instead of recursing, so deep replies need no more memory.
func skipReply(r *bufio.Reader, raw *bytes.Buffer) (kind byte, err error) {
	for left := int64(1); left > 0; {
		line, err := readLine(r, raw)
		if err != nil {
			return 0, err
		}
		more, err := skipValue(r, raw, line)
		if err != nil {
			return 0, err
		}
		// Attributes precede their value, so the value is the first item that is not an
		// attribute when one is left.
		if kind == 0 && left == 1 && line[0] != '|' {
			kind = line[0]
		} else if line[0] == pushType {
			return 0, fmt.Errorf("%w: push message inside a reply", errMalformed)
		}
		if left += more - 1; left > maxItems {
			return 0, fmt.Errorf("%w: too many items", errMalformed)
		}
	}
	return kind, nil
}

// skipValue reads the rest of the value that begins with line, and returns how many values
// complete it.
func skipValue(r *bufio.Reader, raw *bytes.Buffer, line []byte) (more int64, err error) {
	switch line[0] {
	case '+', '-', ':', '_', ',', '#', '(':
		return 0, nil
	case '$', '!', '=': // string, error, verbatim string
		size, err := parseCount(line, maxBulk)
		if err != nil || size < 0 {
			return 0, err
		}
		return 0, copyBulk(r, raw, size)
	case '*', '~', pushType: // array, set, push message
		count, err := parseCount(line, maxItems)
		return max(count, 0), err // -1 is a null array
	case '%': // map: keys and values
		count, err := parseCount(line, maxItems)
		return 2 * max(count, 0), err
	case '|': // attribute: keys and values, and then what they describe
		count, err := parseCount(line, maxItems)
		return 2*max(count, 0) + 1, err
	default:
		return 0, fmt.Errorf("%w: unknown type %q", errMalformed, line[0])
	}
}

// readLine reads up to CRLF and appends what it read to raw. The line it
// returns has no CRLF and is not empty.
func readLine(r *bufio.Reader, raw *bytes.Buffer) ([]byte, error) {
	line, err := r.ReadBytes('\n')
	raw.Write(line)
	if err != nil {
		return nil, atEnd(err, raw)
	}
	line, ok := bytes.CutSuffix(line, []byte("\r\n"))
	if !ok || len(line) == 0 {
		return nil, fmt.Errorf("%w: bad line %q", errMalformed, line)
	}
	return line, nil
}

// parseCount parses the number after the type byte: -1 (null) up to limit.
func parseCount(line []byte, limit int64) (int64, error) {
	n, err := strconv.ParseInt(string(line[1:]), 10, 64)
	if err != nil || n < -1 || n > limit {
		return 0, fmt.Errorf("%w: bad count in %q", errMalformed, line)
	}
	return n, nil
}

// copyBulk appends the content of a string and its CRLF to raw. The buffer grows with the
// received bytes, not with the announced size.
func copyBulk(r *bufio.Reader, raw *bytes.Buffer, size int64) error {
	if _, err := io.CopyN(raw, r, size+2); err != nil {
		return atEnd(err, raw)
	}
	if !bytes.HasSuffix(raw.Bytes(), []byte("\r\n")) {
		return fmt.Errorf("%w: string without end", errMalformed)
	}
	return nil
}

// atEnd returns io.EOF for an end between two messages, and io.ErrUnexpectedEOF within one.
func atEnd(err error, raw *bytes.Buffer) error {
	if errors.Is(err, io.EOF) && raw.Len() > 0 {
		return io.ErrUnexpectedEOF
	}
	return err
}
