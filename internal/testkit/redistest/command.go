package redistest

import (
	"bufio"
	"bytes"
	"fmt"
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
