package redistest

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestStartAnswersWithArgs(t *testing.T) {
	t.Parallel()
	server := Start(t, "--maxmemory", "7mb")
	client := server.Client(t, func(o *redis.Options) { o.DB = 1 })

	if options := client.Options(); options.DB != 1 || options.MaxRetries != 3 {
		t.Errorf("got db %d and %d retries, want 1 and the default of 3", options.DB, options.MaxRetries)
	}
	for name, want := range map[string]string{"maxmemory": "7340032", "save": "", "appendonly": "no"} {
		if got := client.ConfigGet(t.Context(), name).Val()[name]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestStartWithoutRedis(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv(programEnv, "")
	for name, start := range map[string]func(tb testing.TB){
		"server":   func(tb testing.TB) { Start(tb) },
		"cluster":  func(tb testing.TB) { StartCluster(tb) },
		"sentinel": func(tb testing.TB) { StartSentinel(tb) },
	} {
		t.Setenv(suite.RequireEnv, "")
		if ended := watch(t, start); !strings.HasPrefix(ended, "skip: ") || !strings.Contains(ended, "apt-get install") {
			t.Errorf("%s, not required: got %q", name, ended)
		}
		t.Setenv(suite.RequireEnv, "1")
		if ended := watch(t, start); !strings.HasPrefix(ended, "fatal: ") || !strings.Contains(ended, "apt-get install") {
			t.Errorf("%s, required: got %q", name, ended)
		}
	}
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	server := Start(t)
	kept, closed := dialWire(t, server.Addr()), dialWire(t, server.Addr())

	server.Pause()
	kept.send("PING")
	closed.send("INCR n")
	kept.expectSilence()
	closed.hangUp()
	server.Resume()
	kept.expect("+PONG\r\n")
	// The server has received the command while it was stopped.
	awaitKey(t, server.Client(t), "n", "1")
}

func TestKillAndRestart(t *testing.T) {
	t.Parallel()
	server := Start(t)
	client := server.Client(t)
	if err := client.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	addr := server.Addr()

	server.Kill()
	server.Kill() // has nothing to do
	if answers(t, addr) {
		t.Fatal("server lives after kill")
	}
	server.Restart()
	if server.Addr() != addr {
		t.Fatalf("address changed from %s to %s", addr, server.Addr())
	}
	if err := client.Get(t.Context(), "k").Err(); !errors.Is(err, redis.Nil) {
		t.Fatalf("got %v, want an empty server", err)
	}
	server.Restart() // of a running server
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
}

func answers(t *testing.T, addr string) bool {
	t.Helper()
	var dialer net.Dialer
	conn, err := dialer.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// Only a server that has no options of TLS may skip a test.
func TestStartTLSReportsBadArgs(t *testing.T) {
	t.Parallel()
	Start(t) // skips the test where there is no server
	ended := watch(t, func(tb testing.TB) { StartTLS(tb, "--no-such-option", "1") })
	if !strings.HasPrefix(ended, "fatal: start redis-server with TLS") || !strings.Contains(ended, "no-such-option") {
		t.Errorf("got %q", ended)
	}
}

// withoutTLS is a program that ends as a redis-server that was built without TLS.
const withoutTLS = `#!/bin/sh
echo "*** FATAL CONFIG FILE ERROR (Redis 7.0.15) ***"
echo "Reading the configuration file, at line 12"
echo ">>> 'tls-port \"6379\"'"
echo "Bad directive or wrong number of arguments"
exit 1
`

func TestStartTLSOfServerWithoutTLS(t *testing.T) {
	program := filepath.Join(t.TempDir(), "redis-server")
	if err := os.WriteFile(program, []byte(withoutTLS), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv(programEnv, program)
	for value, want := range map[string]string{"": "skip: redis-server has no TLS", "1": "fatal: " + suite.RequireEnv + " is set: redis-server has no TLS"} {
		t.Setenv(suite.RequireEnv, value)
		if ended := watch(t, func(tb testing.TB) { StartTLS(tb) }); !strings.HasPrefix(ended, want) {
			t.Errorf("%s=%q: %q, want %q", suite.RequireEnv, value, ended, want)
		}
	}
}
