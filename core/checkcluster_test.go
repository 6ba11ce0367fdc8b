package core_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// A client of a cluster needs both rules, and Check names the word of the second
// that is missing.
func TestCheckOfTheRightsInACluster(t *testing.T) {
	cluster := redistest.StartCluster(t)
	words := strings.Fields(redistest.ClusterRights)
	for i, missing := range append([]string{""}, words...) {
		user := fmt.Sprint("alice", i)
		order := []any{"acl", "setuser", user, "reset", "on", ">secret", "resetchannels"}
		for _, word := range strings.Fields(redistest.Rights + " " + redistest.ClusterRights) {
			if word != missing {
				order = append(order, word)
			}
		}
		for _, node := range cluster.Nodes() {
			if err := node.Client(t).Do(t.Context(), order...).Err(); err != nil {
				t.Fatal(err)
			}
		}
		rdb := cluster.Client(t, func(o *redis.ClusterOptions) { o.Username, o.Password = user, "secret" })
		err := newLocker(t, rdb, patient).Check(t.Context())
		t.Logf("without %q: %v", missing, err)
		if missing != "" {
			wantFinding(t, err, missing)
		} else if err != nil {
			t.Errorf("with all rights: %v", err)
		}
	}
}
