package redistest

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A move that leaves out a stage would let a fault of the product pass in that stage.
func TestAKeyIsAtOneMasterInEachStageOfAMove(t *testing.T) {
	t.Parallel()
	c := StartCluster(t)
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
}
