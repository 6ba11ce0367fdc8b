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
	// maxBulk is the largest string that is believed to be one: twice what
	// Redis allows by default.
	maxBulk = 1 << 30

	// maxItems is the largest count of an aggregate that is believed.
	maxItems = 1 << 40

	// pushType marks a message that the server sends on its own account.
	pushType = '>'
)

// errMalformed says that the bytes are not the protocol, as opposed to a
// connection that ended.
var errMalformed = errors.New("malformed resp")

// skipReply reads one complete reply of RESP2 or RESP3 from r, and not a byte
// more, and appends it unchanged to raw. It returns the type byte of the
// reply: '>' is a push message, which answers no command.
//
// It counts values instead of recursing: the depth of a reply costs nothing.
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
		// Attributes come in front of the value that they belong to, so the
		// value itself is the first to find itself the only one left.
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

// skipValue reads the rest of the value that line begins, and returns how many
// values have to follow for it to be complete.
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

// copyBulk appends the content of a string and its CRLF to raw. The buffer
// grows with what arrives, not with what was announced.
func copyBulk(r *bufio.Reader, raw *bytes.Buffer, size int64) error {
	if _, err := io.CopyN(raw, r, size+2); err != nil {
		return atEnd(err, raw)
	}
	if !bytes.HasSuffix(raw.Bytes(), []byte("\r\n")) {
		return fmt.Errorf("%w: string without end", errMalformed)
	}
	return nil
}

// atEnd tells the end between two messages (io.EOF) from the end within one.
func atEnd(err error, raw *bytes.Buffer) error {
	if errors.Is(err, io.EOF) && raw.Len() > 0 {
		return io.ErrUnexpectedEOF
	}
	return err
}
