package core_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// patient is the setting of tests in which nothing is late but the machine.
var patient = core.WithCommandTimeout(10 * time.Second)

// as signs a client in as a user.
func as(user, password string) func(*redis.Options) {
	return func(o *redis.Options) { o.Username, o.Password = user, password }
}

// wantFinding fails the test unless Check says each of the words, and is unavailable.
func wantFinding(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("all is well, want %q", words)
		return
	}
	wantError(t, err, core.ErrUnavailable)
	text := err.Error()
	if !strings.HasPrefix(text, "reqlock: check: ") {
		t.Errorf("got %q", text)
	}
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%q does not say %q", text, word)
		}
	}
	if strings.Contains(text, "check:"+"0") || strings.Contains(text, "secret") || strings.Contains(text, "alice") {
		t.Errorf("%q tells too much", text)
	}
	var refusal *core.Error
	if !errors.As(err, &refusal) || refusal.Cause == nil {
		t.Errorf("no *Error with a cause: %#v", err)
	}
}

// wantNoKeys fails the test if a server holds keys.
func wantNoKeys(t *testing.T, rdb *redis.Client) {
	t.Helper()
	if keys := rdb.Keys(t.Context(), "*").Val(); len(keys) != 0 {
		t.Errorf("left behind: %q", keys)
	}
}

func TestCheckOfAServerThatIsWell(t *testing.T) {
	server := redistest.Start(t)
	rdb := server.Client(t)
	heard := &events{}
	for _, prefix := range []string{"reqlock:", "{app}:", "a*[b]?:", ""} {
		server.Grant(redistest.PrefixRights(prefix)...)
		locks := newLocker(t, rdb, core.WithPrefix(prefix), core.WithObserver(heard.observe))
		if err := locks.Check(t.Context()); err != nil {
			t.Errorf("prefix %q: %v", prefix, err)
		}
	}
	wantNoKeys(t, rdb)
	if len(heard.all) != 0 {
		t.Errorf("told: %v", heard.all)
	}
}

// Each word of the rule is needed, and Check names the one that is missing.
func TestCheckNamesTheRightThatIsMissing(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client(t)
	words := strings.Fields(redistest.Rights)
	for i, missing := range append([]string{""}, words...) {
		t.Run(missing, func(t *testing.T) {
			user := fmt.Sprint("alice", i)
			rule := []any{"acl", "setuser", user, "reset", "on", ">secret", "resetchannels"}
			for _, word := range words {
				if word != missing {
					rule = append(rule, word)
				}
			}
			if err := admin.Do(t.Context(), rule...).Err(); err != nil {
				t.Fatal(err)
			}
			for _, cache := range []string{"no scripts", "all scripts"} {
				if cache == "no scripts" {
					admin.ScriptFlush(t.Context())
				} else if err := newLocker(t, admin, patient).Check(t.Context()); err != nil {
					t.Fatal(err)
				}
				err := newLocker(t, server.Client(t, as(user, "secret")), patient).Check(t.Context())
				t.Log(err)
				if missing != "" {
					wantFinding(t, err, missing)
				} else if err != nil {
					t.Errorf("with all rights: %v", err)
				}
			}
			for _, key := range admin.Keys(t.Context(), "*").Val() {
				if admin.PTTL(t.Context(), key).Val() == -1 {
					t.Errorf("without a life: %s", key)
				}
			}
			admin.FlushAll(t.Context())
		})
	}
}

// With the rights that are documented an idempotent request runs, whatever becomes
// of it.
func TestTheRightsSufficeForAnAttempt(t *testing.T) {
	server := redistest.Start(t)
	rule := []any{"acl", "setuser", "alice", "reset", "on", ">secret", "resetchannels"}
	for _, word := range strings.Fields(redistest.Rights) {
		rule = append(rule, word)
	}
	if err := server.Client(t).Do(t.Context(), rule...).Err(); err != nil {
		t.Fatal(err)
	}
	locks := newLocker(t, server.Client(t, as("alice", "secret")), patient)
	for name, end := range map[string]func(*core.Attempt) error{
		"commit":    func(a *core.Attempt) error { return a.Commit(t.Context(), []byte("done")) },
		"seal":      func(a *core.Attempt) error { return a.Seal(t.Context()) },
		"abort":     func(a *core.Attempt) error { return a.Abort(t.Context()) },
		"interrupt": func(a *core.Attempt) error { return a.Interrupt(t.Context()) },
	} {
		a, err := locks.Begin(t.Context(), name, []byte("f"))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := end(a); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	again, err := locks.Begin(t.Context(), "commit", []byte("f"))
	if err != nil {
		t.Fatal(err)
	}
	if record, ok := again.Replay(); !ok || string(record) != "done" {
		t.Errorf("replay %q, %v", record, ok)
	}
	if err := locks.Resolve(t.Context(), "seal"); err != nil {
		t.Error(err)
	}
}
