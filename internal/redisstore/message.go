package redisstore

import (
	"strconv"
	"strings"
)

// parseMessage takes a hint apart: "<token> <lock name>". It is one only if the
// token is of this process. Anybody may publish anything on the channel, so
// nothing else is believed of it than "look again".
func parseMessage(payload, process string) (token, name string, ok bool) {
	token, name, _ = strings.Cut(payload, " ")
	owner, number, _ := strings.Cut(token, ":")
	_, err := strconv.ParseUint(number, 10, 64)
	return token, name, owner == process && err == nil && name != ""
}
