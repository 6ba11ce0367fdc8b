package redisstore

import (
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A store passes the hints for its process to the function of OnHint.
func TestHintArrivesAtItsStore(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	s, hints := newStore(t, rdb), make(chan [2]string, 100)
	s.OnHint(func(key, token string) { hints <- [2]string{key, token} })
	ready, stop := s.Listen("k")
	defer stop()
	suite.Receive(t, "the subscription is confirmed", ready)
	if err := rdb.Publish(t.Context(), "p:"+storetest.Me, storetest.Me1+" p:k").Err(); err != nil {
		t.Fatal(err)
	}
	for got := ([2]string{}); got != [2]string{"k", storetest.Me1}; { // the first hint reports the gap before the subscription
		got = suite.Receive(t, "the hint", hints)
	}
}

func TestProcessesHaveDifferentIDs(t *testing.T) {
	t.Parallel()
	one, other := NewProcess(), NewProcess()
	if len(one) != len(storetest.Me) || one == other {
		t.Errorf("%q and %q", one, other)
	}
}
