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

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// A hintLog records the hints to some processes. It subscribes to their channels as the
// processes would.
type hintLog struct {
	sharded bool
	conns   map[string]*redis.PubSub // by their channels
}

// subscribeAs returns a hintLog of the usual channels of the processes.
func subscribeAs(t *testing.T, rdb redis.UniversalClient, processes ...string) hintLog {
	t.Helper()
	return subscribeInMode(t, rdb, "P", processes...)
}

// subscribeInMode returns a hintLog of the channels on which the scripts publish in a mode of
// queue.lua.
func subscribeInMode(t *testing.T, rdb redis.UniversalClient, mode string, processes ...string) hintLog {
	t.Helper()
	l := hintLog{sharded: mode == "S", conns: make(map[string]*redis.PubSub)}
	for _, process := range processes {
		channel, subscribe := "p:"+process, rdb.Subscribe
		if l.sharded {
			channel, subscribe = "{p:k}:"+process, rdb.SSubscribe
		}
		conn := subscribe(t.Context(), channel)
		t.Cleanup(func() { _ = conn.Close() }) // if the test fails, the next one would wait for this subscription
		if _, err := conn.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.conns[channel] = conn
	}
	return l
}

// end ends the subscriptions and returns the hints. It waits until the server counts no
// subscriber any more.
func (l hintLog) end(t *testing.T, rdb redis.UniversalClient) []string {
	t.Helper()
	publish, channelsOf := rdb.Publish, redis.Cmdable.PubSubChannels
	if l.sharded {
		publish, channelsOf = rdb.SPublish, redis.Cmdable.PubSubShardChannels
	}
	var hints []string
	for channel, conn := range l.conns {
		publish(t.Context(), channel, "end")
		for {
			m, err := conn.ReceiveMessage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if m.Payload == "end" {
				break
			}
			hints = append(hints, m.Payload)
		}
		_ = conn.Close()
	}
	for subscribed := true; subscribed; {
		subscribed = false
		err := redistest.EachMaster(t.Context(), rdb, func(master redis.Cmdable) error {
			channels, err := channelsOf(master, t.Context(), "*p:*").Result()
			subscribed = subscribed || len(channels) > 0
			return err
		})
		if err != nil {
			t.Fatalf("list the channels: %v", err)
		}
	}
	return hints
}

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
