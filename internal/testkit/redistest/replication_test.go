package redistest

import (
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

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
