package core_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
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

// A Check after one that found no problem costs each server few commands, connections included. If a
// server has changed, the next Check is a full one, although another process has checked that server.
func TestNextCheckTakesFewCommands(t *testing.T) {
	t.Parallel()
	type row struct {
		servers []*redistest.Server
		locker  func(t *testing.T) *core.Locker
		change  func() []*redistest.Server // returns the servers of a full run
	}
	for name, start := range map[string]func(t *testing.T) row{
		"one server": func(t *testing.T) row {
			server := redistest.Start(t)
			servers := []*redistest.Server{server}
			return row{servers, func(t *testing.T) *core.Locker { return newLocker(t, server.Client(t), patient) }, func() []*redistest.Server {
				server.Restart()
				server.Grant("+info")
				return servers
			}}
		},
		"a master with a replica": func(t *testing.T) row {
			server := redistest.StartReplicated(t)
			server.Grant(redistest.ReplicaRights)
			return row{[]*redistest.Server{server}, func(t *testing.T) *core.Locker { return newLocker(t, server.Client(t), withReplica()...) }, nil}
		},
		"masters of a cluster": func(t *testing.T) row {
			cluster := redistest.StartCluster(t)
			masters := cluster.Masters()
			return row{masters, func(t *testing.T) *core.Locker { return newLocker(t, cluster.Client(t), patient) }, func() []*redistest.Server {
				cluster.Switch(masters[0])
				return masters[1:]
			}}
		},
		"servers of a quorum": func(t *testing.T) row {
			servers := startServers(t, 3)
			return row{servers, func(t *testing.T) *core.Locker { return newQuorum(t, clientsOf(t, servers)) }, nil}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test := start(t)
			locks := test.locker(t)
			wantCheck := func(what string, servers []*redistest.Server, least, most int) {
				t.Helper()
				admins := clientsOf(t, servers)
				commands := make([]int, len(admins)) // of each server, those of scripts included
				for range 2 {                        // the first time connects
					for i, admin := range admins {
						commands[i] = processed(t, admin)
					}
				}
				noError(t, locks.Check(t.Context()))
				for i, admin := range admins {
					n := processed(t, admin) - commands[i] - 1 // INFO of the test
					t.Logf("%s: server %d: %d commands", what, i, n)
					if n < least || n > most {
						t.Errorf("%s: server %d: %d commands", what, i, n)
					}
				}
			}
			const few, many = 10, 1000
			wantCheck("first", test.servers, 40, many)
			wantCheck("next", test.servers, 1, few)
			if test.change == nil {
				return
			}
			changed, other := test.change(), test.locker(t)
			suite.Eventually(t, "another process checks the servers", func() bool { return other.Check(t.Context()) == nil })
			wantCheck("after a change", changed, 40, many)
			wantCheck("next after a change", changed, 1, few)
		})
	}
}

// processed returns how many commands a server has executed.
func processed(t *testing.T, admin redis.UniversalClient) int {
	t.Helper()
	stats, err := admin.Info(t.Context(), "stats").Result()
	noError(t, err)
	_, count, _ := strings.Cut(stats, "total_commands_processed:")
	count, _, _ = strings.Cut(count, "\r")
	n, err := strconv.Atoi(count)
	noError(t, err)
	return n
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
			for _, state := range []string{"no scripts", "all scripts", "just revoked"} {
				switch state {
				case "no scripts":
					admin.ScriptFlush(t.Context())
				case "all scripts":
					noError(t, unlimited.Check(t.Context()))
				case "just revoked": // after a Check that has found no problem
					setUser(t, admin, user, redistest.Rights, "")
					noError(t, locks.Check(t.Context()))
					setUser(t, admin, user, redistest.Rights, missing)
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
