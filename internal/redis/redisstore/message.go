package redisstore

import (
	"strconv"
	"strings"
)

// A hearer turns messages into hints.
type hearer struct {
	names   names
	process string
	hint    func(key, token string)
}

// message passes a message on, if it is a hint, and if its key can be told. A
// name that is written as a digest is known only while somebody waits: waited
// returns the key then.
func (h *hearer) message(payload string, waited func(name string) (key string, ok bool)) {
	token, name, ok := parseMessage(payload, h.process)
	if !ok {
		return
	}
	key, known := waited(name)
	if !known {
		key, known = h.names.key(name)
	}
	if known {
		h.hint(key, token)
	}
}

// parseMessage takes a hint apart: "<token> <lock name>". It is one only if the
// token is of this process. Anybody may publish anything on the channel, so
// nothing else is believed of it than "look again".
func parseMessage(payload, process string) (token, name string, ok bool) {
	token, name, _ = strings.Cut(payload, " ")
	owner, number, _ := strings.Cut(token, ":")
	_, err := strconv.ParseUint(number, 10, 64)
	return token, name, owner == process && err == nil && name != ""
}
