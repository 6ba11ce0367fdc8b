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

// isEnd picks finish.lua, by the state that it sets: the ninth word after its
// three keys is not that of any other script.
func isEnd(state string) matcher {
	return func(command []string) bool {
		return isScript(command) && command[2] == "3" && len(command) > 13 && command[11] == state && !isBegin(command)
	}
}

var isCommit, isAbort = isEnd("D"), isEnd("A")

// tokenOf returns the token of a script, which is the first word after its keys.
func tokenOf(command []string) string {
	keys, err := strconv.Atoi(command[2])
	if err != nil || len(command) <= 3+keys {
		return ""
	}
	return command[3+keys]
}

func isScript(command []string) bool { return command[0] == "EVALSHA" || command[0] == "EVAL" }

// whenLost runs crash when a command is picked, which Redis does not get until
// release is called, if ever.
func whenLost(p *redistest.Proxy, pick matcher, crash func()) (release func()) {
	release, _ = p.HoldCommand(meanwhile(pick, crash))
	return release
}

// mostSends is more than a process sends of one command before it is killed.
const mostSends = 6

// whenNeverGot runs crash when a command is picked. Redis gets none of its sends: on a
// busy machine a process sends a command again before crash has killed it.
func whenNeverGot(p *redistest.Proxy, pick matcher, crash func()) {
	for range mostSends {
		whenLost(p, pick, crash)
	}
}

// whenUnheard runs crash when a command is picked, which Redis gets then. Nobody
// hears its reply.
func whenUnheard(p *redistest.Proxy, pick matcher, crash func()) {
	p.DropReply(meanwhile(pick, crash), redistest.CloseConn)
}

// meanwhile runs crash while the picked command is in the proxy's hand.
func meanwhile(pick matcher, crash func()) matcher {
	return func(command []string) bool {
		if !pick(command) {
			return false
		}
		crash()
		return true
	}
}
