package core_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// An errorReply is a state of a real server in which it replies with an error.
type errorReply struct {
	args   []string
	client func(*redis.Options)
	// admin changes the options of the client that breaks and repairs the server, unless nil.
	admin func(*redis.Options)
	// breakServer makes the server reply with the error. repair ends that.
	breakServer func(t *testing.T, admin *redis.Client) (repair func())
	// lasts is true if the server does not recover by itself. Then waiters do not wait.
	lasts bool
}

var errorReplies = map[string]errorReply{
	"READONLY":    {breakServer: command("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE")},
	"MASTERDOWN":  {args: []string{"--replica-serve-stale-data", "no", "--replica-read-only", "no"}, breakServer: command("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE")},
	"NOREPLICAS":  {breakServer: command("CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0")},
	"CLUSTERDOWN": {args: []string{"--cluster-enabled", "yes"}, breakServer: command("", "CLUSTER ADDSLOTSRANGE 0 16383")},
	"LOADING": {
		args:        []string{"--enable-debug-command", "yes", "--rdbcompression", "no", "--loading-process-events-interval-bytes", "1024"},
		breakServer: loading,
	},
	"BUSY": {
		args:        []string{"--busy-reply-threshold", "20"},
		admin:       func(o *redis.Options) { o.ReadTimeout = -1 }, // otherwise the client would send the script again
		breakServer: busy,
	},
	"OOM":     {lasts: true, breakServer: command("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0")},
	"MISCONF": {lasts: true, args: []string{"--save", "3600 1", "--enable-protected-configs", "yes"}, breakServer: unableToSave},
	"NOPERM":  {lasts: true, breakServer: command("ACL SETUSER default -set", "ACL SETUSER default +set")},
	"NOAUTH":  {lasts: true, args: []string{"--requirepass", "secret"}, client: as("", ""), breakServer: command("", "CONFIG SET requirepass ''")},
}

// Each error reply of a server is a fault, and never contention. If the server recovers by
// itself, a waiter waits until then. Otherwise the waiter is refused at once. Once the
// server has recovered, locks work again.
func TestErrorReplyIsAFaultAndNotContention(t *testing.T) {
	t.Parallel()
	for prefix, reply := range errorReplies {
		t.Run(prefix, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, reply.args...)
			client := func(configure func(*redis.Options)) *redis.Client {
				if configure == nil {
					return server.Client(t)
				}
				return server.Client(t, configure)
			}
			admin, locks := client(reply.admin), newLocker(t, client(reply.client))
			repair := reply.breakServer(t, admin)

			_, err := locks.TryLock(t.Context(), "k")
			wantErrorReply(t, err, prefix)
			if reply.lasts {
				begun := time.Now()
				_, err = locks.With(core.WithWait(time.Minute)).Lock(t.Context(), "k")
				wantErrorReply(t, err, prefix)
				if took := time.Since(begun); took > 30*time.Second { // half of the wait, for a busy machine
					t.Errorf("the waiter was refused after %v", took)
				}
				repair()
				suite.Eventually(t, "locks work again", func() bool {
					return locks.Do(t.Context(), "k", func(context.Context) error { return nil }) == nil
				})
				return
			}
			served := start(func() error {
				return locks.With(core.WithWait(time.Minute)).Do(t.Context(), "k", func(context.Context) error { return nil })
			})
			_, err = locks.TryLock(t.Context(), "another")
			wantErrorReply(t, err, prefix)
			repair()
			noError(t, suite.Receive(t, "the waiter returns", served))
		})
	}
}

// wantErrorReply fails the test unless err is a fault that wraps an error reply with this
// prefix.
func wantErrorReply(t *testing.T, err error, prefix string) {
	t.Helper()
	wantError(t, err, core.ErrUnavailable)
	var reply redis.Error
	if errors.Is(err, core.ErrBusy) || !errors.As(err, &reply) || !strings.HasPrefix(reply.Error(), prefix) {
		t.Errorf("got %v, want %s", err, prefix)
	}
	if refusal, _ := core.RefusalOf(err); refusal.HTTP != http.StatusServiceUnavailable || refusal.Code != "unavailable" || refusal.RetryAfter <= 0 {
		t.Errorf("%v has the refusal %+v", err, refusal)
	}
}

// command returns a function that breaks a server by one command and repairs it by another.
// A server that is broken by its args needs no first command.
func command(breaks, repairs string) func(*testing.T, *redis.Client) func() {
	send := func(t *testing.T, admin *redis.Client, text string) {
		t.Helper()
		if text == "" {
			return
		}
		var args []any
		for _, arg := range strings.Fields(text) {
			args = append(args, strings.Trim(arg, "'"))
		}
		if err := admin.Do(t.Context(), args...).Err(); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	return func(t *testing.T, admin *redis.Client) func() {
		send(t, admin, breaks)
		return func() {
			t.Helper()
			send(t, admin, repairs)
		}
	}
}

// loading makes a server load its data slowly, with a pause after each key. repair ends the
// pauses.
func loading(t *testing.T, admin *redis.Client) func() {
	t.Helper()
	_, err := admin.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i := range 2000 {
			p.Set(t.Context(), "loaded:"+strconv.Itoa(i), strings.Repeat("x", 1024), 0)
		}
		return nil
	})
	noError(t, err)
	configured("key-load-delay", "50000")(t, admin)
	reloaded := make(chan struct{})
	go func() {
		defer close(reloaded)
		_ = admin.Do(context.Background(), "DEBUG", "RELOAD").Err() // its reply may never come
	}()
	suite.Eventually(t, "the server loads", func() bool {
		err := admin.Get(t.Context(), "loaded:0").Err()
		return err != nil && strings.HasPrefix(err.Error(), "LOADING")
	})
	return func() {
		t.Helper()
		configured("key-load-delay", "0")(t, admin)
		suite.AwaitClosed(t, "the server has loaded its data", reloaded)
	}
}

// busy makes a server run a script that does not end. repair kills the script.
func busy(t *testing.T, admin *redis.Client) func() {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = admin.Eval(context.Background(), "while true do end", nil).Err()
	}()
	suite.Eventually(t, "the server is busy", func() bool {
		err := admin.Ping(t.Context()).Err()
		return err != nil && strings.HasPrefix(err.Error(), "BUSY")
	})
	return func() {
		t.Helper()
		noError(t, admin.ScriptKill(t.Context()).Err())
		suite.AwaitClosed(t, "the script has ended", ended)
	}
}

// unableToSave removes the folder in which a server saves its data.
func unableToSave(t *testing.T, admin *redis.Client) func() {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "gone")
	noError(t, os.Mkdir(folder, 0o755))
	configured("dir", folder)(t, admin)
	noError(t, os.Remove(folder))
	noError(t, admin.BgSave(t.Context()).Err())
	suite.Eventually(t, "the save has failed", func() bool {
		return strings.Contains(admin.Info(t.Context(), "persistence").Val(), "rdb_last_bgsave_status:err")
	})
	return func() {
		t.Helper()
		configured("stop-writes-on-bgsave-error", "no")(t, admin)
	}
}
