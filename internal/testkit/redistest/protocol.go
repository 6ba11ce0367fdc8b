package redistest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// maxArgs is the largest number of arguments that Redis accepts.
const maxArgs = 1 << 20

// readCommand reads one complete command, an array of strings, from r. It returns the command
// with its name in upper case, and its unchanged bytes. The command is empty if the array is
// empty: Redis does not answer that.
func readCommand(r *bufio.Reader) (command []string, data []byte, err error) {
	var raw bytes.Buffer
	line, err := readLine(r, &raw)
	if err != nil {
		return nil, nil, err
	}
	if line[0] != '*' {
		return nil, nil, fmt.Errorf("%w: command is not an array but %q", errMalformed, line)
	}
	count, err := parseCount(line, maxArgs)
	if err != nil {
		return nil, nil, err
	}
	for range count {
		line, err := readLine(r, &raw)
		if err != nil {
			return nil, nil, err
		}
		if line[0] != '$' {
			return nil, nil, fmt.Errorf("%w: argument is not a string but %q", errMalformed, line)
		}
		size, err := parseCount(line, maxBulk)
		if err != nil {
			return nil, nil, err
		}
		if size < 0 {
			return nil, nil, fmt.Errorf("%w: argument is null", errMalformed)
		}
		start := raw.Len()
		if err := copyBulk(r, &raw, size); err != nil {
			return nil, nil, err
		}
		command = append(command, string(raw.Bytes()[start:raw.Len()-2]))
	}
	if len(command) > 0 {
		command[0] = strings.ToUpper(command[0])
	}
	return command, raw.Bytes(), nil
}

// endsReplies reports whether replies on the connection can no longer be matched with commands
// after this command. A server confirms a subscription once for each channel, and CLIENT REPLY
// turns replies off.
func endsReplies(command []string) bool {
	switch command[0] {
	case "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE",
		"UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE", "MONITOR":
		return true
	case "CLIENT":
		return len(command) > 1 && strings.EqualFold(command[1], "REPLY")
	default:
		return false
	}
}

const (
	// maxBulk is the longest accepted string: twice the default limit of Redis.
	maxBulk = 1 << 30

	// maxItems is the largest accepted count of an aggregate.
	maxItems = 1 << 40

	// pushType marks a message that is no reply.
	pushType = '>'
)

// errMalformed means that the sender violates the protocol. The end of a connection is another
// error.
var errMalformed = errors.New("malformed resp")

// skipReply reads one complete reply of RESP2 or RESP3 from r, and appends it unchanged to raw.
// It returns the type byte of the reply. The type '>' is a push message, which is not a reply to
// a command.
//
// It counts values instead of recursing, so a deeply nested reply needs no more memory.
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
		// Attributes precede their value. So the type of the reply is that of the first item
		// that is not an attribute while one value is left.
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

// skipValue reads the rest of the value that begins with line. It returns how many values follow
// as parts of this value.
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
	case '|': // attribute: keys and values, and then the value that they describe
		count, err := parseCount(line, maxItems)
		return 2*max(count, 0) + 1, err
	default:
		return 0, fmt.Errorf("%w: unknown type %q", errMalformed, line[0])
	}
}

// readLine reads a line and appends it to raw. The returned line has no CRLF and is not empty.
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

// parseCount returns the number after the type byte, which is between -1 (null) and limit.
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
