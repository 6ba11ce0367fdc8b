package redistest

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func movesSlot(t *testing.T, c *Cluster) {
	t.Helper()
	client := c.Client(t)
	from := c.MasterOf("{k}")
	to := c.Masters()[0]
	if to == from {
		to = c.Masters()[1]
	}
	slot := c.Slot("{k}")
	asking := from.Client(t, once)
	fails := func(what string, err error, want string) {
		t.Helper()
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", what, err, want)
		}
	}
	for _, key := range []string{"{k}1", "{k}2"} {
		if err := client.Set(t.Context(), key, key, time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
	}

	move := c.BeginMove("{k}", to)
	ask := fmt.Sprintf("ASK %d %s", slot, to.Addr())
	fails("a key that is nowhere", asking.Get(t.Context(), "{k}3").Err(), ask)
	if got := asking.Get(t.Context(), "{k}1").Val(); got != "{k}1" {
		t.Errorf("before its move: got %q", got)
	}
	move.Keys("{k}1", "{k}none")
	fails("a key that has moved", asking.Get(t.Context(), "{k}1").Err(), ask)
	fails("keys on both sides", asking.MGet(t.Context(), "{k}1", "{k}2").Err(), "TRYAGAIN")
	for _, key := range []string{"{k}1", "{k}2"} {
		if got := client.Get(t.Context(), key).Val(); got != key {
			t.Errorf("amid the move: got %q, want %q", got, key)
		}
	}
	if c.MasterOf("{k}") != from {
		t.Error("the slot has moved before the end")
	}

	move.Finish()
	if c.MasterOf("{k}") != to {
		t.Error("the slot has not moved")
	}
	fails("the old master", asking.Get(t.Context(), "{k}2").Err(), fmt.Sprintf("MOVED %d %s", slot, to.Addr()))
	for _, key := range []string{"{k}1", "{k}2"} {
		has(t, to, key, key)
		if left := to.Client(t).TTL(t.Context(), key).Val(); left <= 0 || left > time.Hour {
			t.Errorf("%v are left of %s", left, key)
		}
	}
	if got := client.MGet(t.Context(), "{k}1", "{k}2").Val(); len(got) != 2 || got[0] != "{k}1" || got[1] != "{k}2" {
		t.Errorf("after the move: got %v", got)
	}

	// And back, with more keys than are moved at once.
	for i := range 250 {
		if err := client.Set(t.Context(), fmt.Sprintf("{k}many%d", i), "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	started := time.Now()
	c.MoveSlot("{k}", from)
	t.Logf("moved after %v", time.Since(started))
	if n := from.Client(t).ClusterCountKeysInSlot(t.Context(), slot).Val(); n != 252 || c.MasterOf("{k}") != from {
		t.Errorf("%d keys came back", n)
	}

	r := &recorder{TB: t}
	c.tb = r
	watch(t, func(testing.TB) { c.MoveSlot("{k}", from) })
	if !strings.Contains(r.ended, "it is there") {
		t.Errorf("a move to where the slot is: got %q", r.ended)
	}
	c.tb = t
}
