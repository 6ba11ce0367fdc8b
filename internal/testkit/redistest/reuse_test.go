package redistest

import (
	"strings"
	"testing"
)

func TestClearedServerIsAsNew(t *testing.T) {
	t.Parallel()
	server := Reuse(t)
	rdb := server.Client(t)
	reader := dialWire(t, server.Addr())
	subscriber := dialWire(t, server.Addr())
	subscriber.send("SUBSCRIBE c")
	subscriber.expect("*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n")
	reader.send("SELECT 1")
	reader.expect("+OK\r\n")
	reader.send("SET k v")
	reader.expect("+OK\r\n")
	script := rdb.ScriptLoad(t.Context(), "return 1").Val()

	server.mu.Lock()
	cleared := server.clear()
	server.mu.Unlock()
	if !cleared {
		t.Fatal("a server with nothing but data is not cleared")
	}
	reader.expectClosed()
	subscriber.expectClosed()
	fresh := server.Client(t)
	if keys := fresh.InfoMap(t.Context(), "keyspace").Val()["Keyspace"]; len(keys) > 0 {
		t.Errorf("it has keys: %v", keys)
	}
	if script == "" || fresh.ScriptExists(t.Context(), script).Val()[0] {
		t.Errorf("it has the script %q", script)
	}
	if stats := fresh.InfoMap(t.Context(), "commandstats").Val()["Commandstats"]; stats["cmdstat_set"] != "" {
		t.Errorf("it has statistics of a SET: %v", stats)
	}
}

func TestOnlyUnchangedServersAreReused(t *testing.T) {
	t.Parallel()
	command := func(args ...any) func(*testing.T, *Server) {
		return func(t *testing.T, s *Server) {
			if err := s.Client(t).Do(t.Context(), args...).Err(); err != nil {
				t.Errorf("%v: %v", args, err)
			}
		}
	}
	for name, test := range map[string]struct {
		change func(*testing.T, *Server)
		reused bool
	}{
		"data":             {command("set", "k", "v"), true},
		"read its setting": {command("config", "get", "maxmemory"), true},
		"setting":          {command("config", "set", "maxmemory", "1gb"), false},
		"user":             {command("acl", "setuser", "alice"), false},
		"master":           {command("replicaof", "127.0.0.1", "1"), false},
		"paused clients":   {command("client", "pause", "1", "write"), false},
		"paused":           {func(_ *testing.T, s *Server) { s.Pause() }, false},
		"resumed":          {func(_ *testing.T, s *Server) { s.Pause(); s.Resume() }, true},
		"killed":           {func(_ *testing.T, s *Server) { s.Kill() }, false},
		"restarted":        {func(_ *testing.T, s *Server) { s.Restart() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := Reuse(t)
			before := &Server{proc: server.proc}
			test.change(t, server)
			if got := server.giveBack(t, before); got != test.reused {
				t.Errorf("it is given back: %v; want %v", got, test.reused)
			}
		})
	}
}

func TestFailureOfASharedServerPanics(t *testing.T) {
	t.Parallel()
	r := &recorder{TB: t}
	lifetime := &processLifetime{TB: r, starting: true}
	if ended := watch(t, func(testing.TB) { lifetime.Fatalf("no port is free") }); r.ended != "fatal: no port is free" {
		t.Errorf("while it starts: got %q, %q", ended, r.ended)
	}
	lifetime.starting = false
	defer func() {
		if text, ok := recover().(string); !ok || !strings.Contains(text, "no answer") {
			t.Errorf("afterwards: got %q", text)
		}
	}()
	lifetime.Errorf("no answer")
}
