package crash

import (
	"strconv"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// A matcher picks commands for a proxy.
type matcher = func(command []string) bool

// isBegin picks begin.lua, by its last argument.
func isBegin(command []string) bool {
	last := command[len(command)-1]
	return isScript(command) && (last == "rerun" || last == "reject")
}

// isEnd picks finish.lua by the state that it sets: no other script has that value as the
// ninth argument after three keys.
func isEnd(state string) matcher {
	return func(command []string) bool {
		return isScript(command) && command[2] == "3" && len(command) > 13 && command[11] == state && !isBegin(command)
	}
}

var isCommit, isAbort = isEnd("D"), isEnd("A")

// tokenOf returns the token of a script, which is the first argument after its keys.
func tokenOf(command []string) string {
	keys, err := strconv.Atoi(command[2])
	if err != nil || len(command) <= 3+keys {
		return ""
	}
	return command[3+keys]
}

func isScript(command []string) bool { return command[0] == "EVALSHA" || command[0] == "EVAL" }

// atLostCommand calls kill when a command is picked. Redis does not receive the command
// until release is called.
func atLostCommand(p *redistest.Proxy, pick matcher, kill func()) (release func()) {
	release, _ = p.HoldCommand(calling(pick, kill))
	return release
}

// maxSends is more than a process sends of one command before it is killed.
const maxSends = 6

// atLostResends calls kill when a command is picked. Redis receives the command never: on
// a busy machine a process resends it before kill is complete, and the proxy holds these
// sends, too.
func atLostResends(p *redistest.Proxy, pick matcher, kill func()) {
	for range maxSends {
		atLostCommand(p, pick, kill)
	}
}

// atLostReply calls kill when a command is picked. Then Redis receives the command, and
// its reply is dropped.
func atLostReply(p *redistest.Proxy, pick matcher, kill func()) (lost <-chan struct{}) {
	return p.DropReply(calling(pick, kill), redistest.CloseConn)
}

func calling(pick matcher, kill func()) matcher {
	return func(command []string) bool {
		if !pick(command) {
			return false
		}
		kill()
		return true
	}
}
