package command

import (
	"runtime"
	"strings"
)

// Exec calls a function of go-redis that sends commands and reads their replies. go-redis panics if
// a reply has lost bytes, so that its length has too many digits. Then the error says that the
// reply cannot be parsed: see IsTransport. Any other panic is that of a hook of the client, and
// goes on. A cluster's client reads the replies of a pipeline on goroutines of its own, whose panics
// nobody else can end.
func Exec(send func() error) (err error) {
	defer func() {
		caught := recover()
		failure, _ := caught.(runtime.Error)
		switch {
		case failure != nil && strings.Contains(failure.Error(), "makeslice"):
			err = errUnreadable
		case caught != nil:
			panic(caught)
		}
	}()
	return send()
}
