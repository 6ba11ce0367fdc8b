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

// A ran command is one that a server has run: from is the address of whoever sent
// it, or "lua".
type ran struct{ from, name string }

// monitored is a line of MONITOR: when, the database and the sender, the command.
var monitored = regexp.MustCompile(`^\+[0-9.]+ \[\d+ (\S+)\] "([^"]+)"`)

// monitor returns a function that returns what the server has run since it was last
// called.
func monitor(t *testing.T, server *redistest.Server) (heard func() []ran) {
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
	heard = func() (all []ran) {
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
				all = append(all, ran{found[1], strings.ToUpper(found[2])})
			}
		}
	}
	return heard
}

// named returns those of the commands with one of the names.
func named(all []ran, names ...string) (found []ran) {
	for _, command := range all {
		if slices.Contains(names, command.name) {
			found = append(found, command)
		}
	}
	return found
}
