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
)

// An errorReply is an error that a real server was made to say.
type errorReply struct {
	args   []string
	client func(*redis.Options)
	// admin changes the options of the client that spoils and mends the server; nil nothing.
	admin func(*redis.Options)
	// spoil makes the server say it, and returns what makes it well again.
	spoil func(t *testing.T, admin *redis.Client) (mend func())
	// lasts is true of what a server does not outgrow: nobody waits for it.
	lasts bool
}

var errorReplies = map[string]errorReply{
	"READONLY":    {spoil: command("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE")},
	"MASTERDOWN":  {args: []string{"--replica-serve-stale-data", "no", "--replica-read-only", "no"}, spoil: command("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE")},
	"NOREPLICAS":  {spoil: command("CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0")},
	"CLUSTERDOWN": {args: []string{"--cluster-enabled", "yes"}, spoil: command("", "CLUSTER ADDSLOTSRANGE 0 16383")},
	"LOADING": {
		args:  []string{"--enable-debug-command", "yes", "--rdbcompression", "no", "--loading-process-events-interval-bytes", "1024"},
		spoil: loading,
	},
	"BUSY": {
		args:  []string{"--busy-reply-threshold", "20"},
		admin: func(o *redis.Options) { o.ReadTimeout = -1 }, // or it would send the script again
		spoil: busy,
	},
	"OOM":     {lasts: true, spoil: command("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0")},
	"MISCONF": {lasts: true, args: []string{"--save", "3600 1", "--enable-protected-configs", "yes"}, spoil: unableToSave},
	"NOPERM":  {lasts: true, spoil: command("ACL SETUSER default -set", "ACL SETUSER default +set")},
	"NOAUTH":  {lasts: true, args: []string{"--requirepass", "secret"}, client: as("", ""), spoil: command("", "CONFIG SET requirepass ''")},
}

// Each error that a server says instead of an answer is a fault and never
// contention. Who may wait outlasts those that pass, and is refused at once for
// the others; when the server is well again, so is the lock.
//
//faults:row 19: READONLY, MASTERDOWN, NOREPLICAS, CLUSTERDOWN, LOADING
//faults:row 20: BUSY, OOM, MISCONF, NOPERM, NOAUTH
//faults:row 25: a replica is asked and says READONLY
func TestAnErrorReplyIsAFaultAndNotContention(t *testing.T) {
	t.Parallel()
	for says, reply := range errorReplies {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, reply.args...)
			client := func(configure func(*redis.Options)) *redis.Client {
				if configure == nil {
					return server.Client(t)
				}
				return server.Client(t, configure)
			}
			admin, locks := client(reply.admin), newLocker(t, client(reply.client))
			mend := reply.spoil(t, admin)

			_, err := locks.TryLock(t.Context(), "k")
			wantErrorReply(t, err, says)
			if reply.lasts {
				begun := time.Now()
				_, err = locks.With(core.WithWait(time.Minute)).Lock(t.Context(), "k")
				wantErrorReply(t, err, says)
				if took := time.Since(begun); took > 30*time.Second {
					t.Errorf("refused after %v, to the end of a wait that cannot help", took)
				}
				mend()
				await(t, "the lock is well again", func() bool {
					return locks.Do(t.Context(), "k", func(context.Context) error { return nil }) == nil
				})
				return
			}
			served := make(chan error, 1)
			go func() {
				served <- locks.With(core.WithWait(time.Minute)).Do(t.Context(), "k", func(context.Context) error { return nil })
			}()
			_, err = locks.TryLock(t.Context(), "another")
			wantErrorReply(t, err, says)
			mend()
			if err := <-served; err != nil {
				t.Errorf("a waiter did not outlast it: %v", err)
			}
		})
	}
}

// wantErrorReply fails the test unless a request is told of a fault, because of
// what the server said.
func wantErrorReply(t *testing.T, err error, says string) {
	t.Helper()
	wantError(t, err, core.ErrUnavailable)
	var reply redis.Error
	if errors.Is(err, core.ErrBusy) || !errors.As(err, &reply) || !strings.HasPrefix(reply.Error(), says) {
		t.Errorf("got %v, want %s", err, says)
	}
	if outcome, _ := core.OutcomeOf(err); outcome.HTTP != http.StatusServiceUnavailable || outcome.Code != "unavailable" || outcome.RetryAfter <= 0 {
		t.Errorf("%v is answered %+v", err, outcome)
	}
}

// command sends a command to spoil a server, and one to mend it. A server whose
// args spoil it needs none.
func command(spoils, mends string) func(*testing.T, *redis.Client) func() {
	send := func(t *testing.T, admin *redis.Client, text string) {
		t.Helper()
		if text == "" {
			return
		}
		var words []any
		for _, word := range strings.Fields(text) {
			words = append(words, strings.Trim(word, "'"))
		}
		if err := admin.Do(t.Context(), words...).Err(); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	return func(t *testing.T, admin *redis.Client) func() {
		t.Helper()
		send(t, admin, spoils)
		return func() {
			t.Helper()
			send(t, admin, mends)
		}
	}
}

// loading has a server load its data for as long as it takes to be told not to
// rest after each key.
func loading(t *testing.T, admin *redis.Client) func() {
	t.Helper()
	_, err := admin.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i := range 2000 {
			p.Set(t.Context(), "loaded:"+strconv.Itoa(i), strings.Repeat("x", 1024), 0)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	configured("key-load-delay", "50000")(t, admin)
	reloaded := make(chan struct{})
	go func() {
		defer close(reloaded)
		_ = admin.Do(context.Background(), "DEBUG", "RELOAD").Err() // its reply may be waited for in vain
	}()
	await(t, "the server loads", func() bool {
		err := admin.Get(t.Context(), "loaded:0").Err()
		return err != nil && strings.HasPrefix(err.Error(), "LOADING")
	})
	return func() {
		t.Helper()
		configured("key-load-delay", "0")(t, admin)
		<-reloaded
	}
}

// busy has a server run somebody's script until it is told to end it.
func busy(t *testing.T, admin *redis.Client) func() {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = admin.Eval(context.Background(), "while true do end", nil).Err()
	}()
	await(t, "the server is busy", func() bool {
		err := admin.Ping(t.Context()).Err()
		return err != nil && strings.HasPrefix(err.Error(), "BUSY")
	})
	return func() {
		t.Helper()
		if err := admin.ScriptKill(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		<-ended
	}
}

// unableToSave takes away the folder in which a server saves its data.
func unableToSave(t *testing.T, admin *redis.Client) func() {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	configured("dir", folder)(t, admin)
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	if err := admin.BgSave(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	await(t, "the save has failed", func() bool {
		return strings.Contains(admin.Info(t.Context(), "persistence").Val(), "rdb_last_bgsave_status:err")
	})
	return func() {
		t.Helper()
		configured("stop-writes-on-bgsave-error", "no")(t, admin)
	}
}
