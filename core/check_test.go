package core_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

func TestCheckOfHealthyServer(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	rdb := server.Client(t, deadlines)
	events := &recorder{}
	for _, prefix := range []string{"reqlock:", "{app}:", "a*[b]?:", ""} {
		server.Grant(redistest.PrefixRights(prefix)...)
		locks := newLocker(t, rdb, core.WithPrefix(prefix), core.WithObserver(events.record))
		if err := locks.Check(t.Context()); err != nil {
			t.Errorf("prefix %q: %v", prefix, err)
		}
		closeLocker(t, locks)
	}
	wantNoKeys(t, rdb)
	if len(events.all()) != 0 {
		t.Errorf("events: %v", events.all())
	}
}

// Check reports once that callers cannot send their own commands.
func TestCheckWarnsOfContextTimeout(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	locks, events := observed(t, rdb)
	for range 2 {
		noError(t, locks.With(core.WithTTL(time.Minute)).Check(t.Context()))
	}
	warned := events.of(core.Warned)
	if len(warned) != 1 || !strings.Contains(warned[0].Err.Error(), "set ContextTimeoutEnabled to true") {
		t.Errorf("warned: %v", warned)
	}
}

// Each right is needed, and Check names the one that is missing.
func TestCheckNamesTheMissingRight(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	admin := server.Client(t)
	unlimited := newLocker(t, admin, patient)
	for i, missing := range append([]string{""}, strings.Fields(redistest.Rights)...) {
		t.Run(missing, func(t *testing.T) {
			user := fmt.Sprint("alice", i)
			setUser(t, admin, user, redistest.Rights, missing)
			locks := newLocker(t, server.Client(t, as(user, "secret")), patient)
			for _, cache := range []string{"no scripts", "all scripts"} {
				if cache == "no scripts" {
					admin.ScriptFlush(t.Context())
				} else if err := unlimited.Check(t.Context()); err != nil {
					t.Fatal(err)
				}
				err := locks.Check(t.Context())
				t.Log(err)
				if missing != "" {
					wantFinding(t, err, missing)
				} else if err != nil {
					t.Errorf("with all rights: %v", err)
				}
			}
			for _, key := range admin.Keys(t.Context(), "*").Val() {
				if admin.PTTL(t.Context(), key).Val() == -1 {
					t.Errorf("a key without a TTL: %s", key)
				}
			}
			admin.FlushAll(t.Context())
		})
	}
}

// The documented rights suffice for an idempotent request, however its attempt ends.
func TestDocumentedRightsSufficeForAttempts(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	setUser(t, server.Client(t), "alice", redistest.Rights, "")
	locks := newLocker(t, server.Client(t, as("alice", "secret")), patient)
	for name, end := range map[string]func(*core.Attempt) error{
		"commit":  func(a *core.Attempt) error { return a.Commit(t.Context(), []byte("done")) },
		"done":    func(a *core.Attempt) error { return a.Done(t.Context()) },
		"abort":   func(a *core.Attempt) error { return a.Abort(t.Context()) },
		"unknown": func(a *core.Attempt) error { return a.Unknown(t.Context(), nil) },
	} {
		if err := end(begin(t, locks, name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	wantReplay(t, locks, "commit", "done")
	wantError(t, forget(t, locks, "done"), core.ErrChanged)
}
