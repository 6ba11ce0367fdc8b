package core_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/redistest"
)

// A client of a cluster does with the two rules together, and not with the first
// alone.
func TestCheckOfTheRightsInACluster(t *testing.T) {
	cluster := redistest.StartCluster(t)
	for user, rule := range map[string]string{
		"alice": redistest.Rights + " " + redistest.ClusterRights,
		"bob":   redistest.Rights,
	} {
		for _, node := range cluster.Nodes() {
			order := []any{"acl", "setuser", user, "reset", "on", ">secret", "resetchannels"}
			for _, word := range strings.Fields(rule) {
				order = append(order, word)
			}
			if err := node.Client(t).Do(t.Context(), order...).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	locker := func(user string) *core.Locker {
		return newLocker(t, cluster.Client(t, func(o *redis.ClusterOptions) { o.Username, o.Password = user, "secret" }), patient)
	}
	if err := locker("alice").Check(t.Context()); err != nil {
		t.Error(err)
	}
	wantFinding(t, locker("bob").Check(t.Context()), "+cluster|slots")
}
