package redisstore

import (
	"bufio"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// A ranCommand is a command that a server has run. from is the address of the client, or
// "lua" for a command of a script.
type ranCommand struct{ from, name string }

// monitored matches a line of MONITOR: the time, the database and the client, the command.
var monitored = regexp.MustCompile(`^\+[0-9.]+ \[\d+ (\S+)\] "([^"]+)"`)

// monitor returns a function. Each call of it returns the commands that the server has run
// since the last call.
func monitor(t *testing.T, server *redistest.Server) (newCommands func() []ranCommand) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := conn.Write([]byte(redistest.SignIn() + "MONITOR\r\n")); err != nil {
		t.Fatal(err)
	}
	lines, observer, n := bufio.NewReader(conn), server.Client(t), 0
	newCommands = func() (all []ranCommand) {
		t.Helper()
		n++
		mark := fmt.Sprintf("end %d", n)
		observer.Echo(t.Context(), mark)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(line, mark) {
				return all
			}
			if found := monitored.FindStringSubmatch(line); found != nil {
				all = append(all, ranCommand{found[1], strings.ToUpper(found[2])})
			}
		}
	}
	return newCommands
}

// named returns the commands with one of the names.
func named(all []ranCommand, names ...string) (found []ranCommand) {
	for _, command := range all {
		if slices.Contains(names, command.name) {
			found = append(found, command)
		}
	}
	return found
}
