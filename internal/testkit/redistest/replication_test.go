package redistest

import (
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestRolesOfMasterAndReplica(t *testing.T) {
	t.Parallel()
	const addr = "127.0.0.1:7"
	known := []any{[]any{"127.0.0.1", "6", "14"}, []any{"127.0.0.1", "7", "14"}}
	for name, test := range map[string]struct {
		role          []any
		leads, copies bool // the replica, the master at addr, as far as 20
	}{
		"master":             {[]any{"master", int64(20), known}, true, false},
		"master of another":  {[]any{"master", int64(20), known[:1]}, false, false},
		"master of none":     {[]any{"master", int64(20), []any{}}, false, false},
		"replica":            {[]any{"slave", "127.0.0.1", int64(7), "connected", int64(20)}, false, true},
		"replica ahead":      {[]any{"slave", "127.0.0.1", int64(7), "connected", int64(21)}, false, true},
		"replica behind":     {[]any{"slave", "127.0.0.1", int64(7), "connected", int64(19)}, false, false},
		"replica of another": {[]any{"slave", "127.0.0.1", int64(6), "connected", int64(20)}, false, false},
		"replica copying":    {[]any{"slave", "127.0.0.1", int64(7), "sync", int64(20)}, false, false},
		"sentinel":           {[]any{"sentinel", []any{MasterName}}, false, false},
		"nothing":            {nil, false, false},
	} {
		offset, leading := isMasterOf(test.role, addr)
		if leading != test.leads || leading && offset != 20 {
			t.Errorf("%s: leads to %d: %v", name, offset, leading)
		}
		if copying := isReplicaOf(test.role, addr, 20); copying != test.copies {
			t.Errorf("%s: copies: %v", name, copying)
		}
	}
}

func TestReplicaFollowsOnlyAConnectedMaster(t *testing.T) {
	t.Parallel()
	master, replica := newServer(t, Program(t), replicated(nil)), newServer(t, Program(t), replicated(nil))
	group{master, replica}.start(t)
	rejected := func(why string) {
		t.Helper()
		if err := follows(t.Context(), replica, master); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("got %v, want %s", err, why)
		}
	}
	following := func() bool { return follows(t.Context(), replica, master) == nil }

	rejected("does not have the replica")
	replica.mustRun("REPLICAOF", "127.0.0.1", master.port)
	suite.Eventually(t, "the replica", following)
	master.RefuseReplicas(true)
	rejected("does not have the replica")
	master.RefuseReplicas(false)
	suite.Eventually(t, "the replica", following)
	replica.mustRun("REPLICAOF", "NO", "ONE")
	suite.Eventually(t, "the end of the link", func() bool { return !following() })
}

// While one replica is cut off, the other one has the writes of the master.
func TestRefuseMaster(t *testing.T) {
	t.Parallel()
	program := Program(t)
	var all group
	for range 3 {
		all = append(all, newServer(t, program, replicated(nil)))
	}
	all.start(t)
	master, refuser, other := all[0], all[1], all[2]
	for _, replica := range []*Server{refuser, other} {
		replica.mustRun("REPLICAOF", "127.0.0.1", master.port)
		suite.Eventually(t, "the replica", func() bool { return follows(t.Context(), replica, master) == nil })
	}

	refuser.RefuseMaster(true)
	if err := master.Client(t).Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	awaitKey(t, other.Client(t), "k", "v")
	has(t, refuser, "k", "")
	suite.Eventually(t, "a refusal", func() bool {
		entries, err := master.admin().ACLLog(t.Context(), 10).Result()
		return err == nil && slices.ContainsFunc(entries, func(e *redis.ACLLogEntry) bool { return e.Reason == "auth" })
	})
	has(t, refuser, "k", "")

	refuser.RefuseMaster(false)
	awaitKey(t, refuser.Client(t), "k", "v")
}
