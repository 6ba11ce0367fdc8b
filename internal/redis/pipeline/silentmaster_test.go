package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A transition is sent on one of the lanes.
type transition struct {
	name    string
	prepare func(s *syncStore, r storetest.AnyRequest) error // makes the state that do needs
	do      func(s *syncStore, r storetest.AnyRequest) error
}

var errUnexpectedAnswer = errors.New("unexpected answer")

// expect returns err, or errUnexpectedAnswer if the answer is not the expected one.
func expect(isExpected bool, err error) error {
	if err == nil && !isExpected {
		err = errUnexpectedAnswer
	}
	return err
}

func take(s *syncStore, r storetest.AnyRequest) error {
	got, err := s.Take(context.Background(), r)
	return expect(got.Granted, err)
}

func begin(s *syncStore, r storetest.AnyRequest) error {
	r.Attempt = storetest.AttemptRequest(r.Token).Attempt
	got, err := s.Enqueue(context.Background(), r)
	return expect(got.Granted, err)
}

// transitions returns a transition for each lane.
func transitions() []transition {
	none := func(*syncStore, storetest.AnyRequest) error { return nil }
	return []transition{
		{"take", none, take},
		{"renew", take, func(s *syncStore, r storetest.AnyRequest) error {
			got, err := s.Renew(context.Background(), r)
			return expect(got.Held, err)
		}},
		{"release", take, func(s *syncStore, r storetest.AnyRequest) error {
			got, err := s.Release(context.Background(), r)
			return expect(got.Status == store.Freed, err)
		}},
		{"begin", none, begin},
		{"finish", begin, func(s *syncStore, r storetest.AnyRequest) error {
			r.Attempt, r.Ending, r.Record = storetest.AttemptRequest(r.Token).Attempt, store.Commit, []byte(storetest.Record)
			got, err := s.Release(context.Background(), r)
			return expect(got.Status == store.Freed && got.Record == store.WasStored, err)
		}},
	}
}

// On each lane, the calls for a silent master wait, and the other masters answer their calls
// meanwhile.
func testSilentMaster(t *testing.T, cluster *redistest.Cluster) {
	t.Helper()
	const unanswered, others = 8, 20 // calls for the silent master, and for each other master
	for _, transition := range transitions() {
		t.Run(transition.name, func(t *testing.T) {
			proxies, tokens := storetest.NewClusterProxies(t, cluster), &storetest.Tokens{Last: 1000}
			s := newStore(t, proxies.Client(t, storetest.SlowClusterReads))
			silent, requests := cluster.Masters()[0], make(map[*redistest.Server][]storetest.AnyRequest)
			for master, tag := range storetest.TagsOf(t, cluster) {
				for i := range unanswered + others {
					r := tokens.Request(fmt.Sprint(tag, transition.name, i))
					r.Bound = storetest.LongBound
					if err := transition.prepare(s, r); err != nil {
						t.Fatal(err)
					}
					requests[master] = append(requests[master], r)
				}
			}

			if err := take(s, tokens.Request(transition.name)); err != nil { // the client loads the slots
				t.Fatal(err)
			}
			proxies.To(silent).Partition()
			t.Cleanup(proxies.To(silent).Heal)
			var answered atomic.Int64
			var waiting sync.WaitGroup
			for _, r := range requests[silent][:unanswered] {
				waiting.Go(func() {
					if err := transition.do(s, r); err != nil {
						t.Errorf("%s on the silent master: %v", transition.name, err)
					}
					answered.Add(1)
				})
			}
			begun := time.Now()
			for master, all := range requests {
				if master == silent {
					continue
				}
				for _, r := range all[:others] {
					done := make(chan error, 1)
					go func() { done <- transition.do(s, r) }()
					if err := suite.Receive(t, "an answer of another master", done); err != nil {
						t.Errorf("%s on another master: %v", transition.name, err)
					}
				}
			}
			if took := time.Since(begun); took > storetest.Patience {
				t.Errorf("the other masters took %v", took)
			}
			if n := answered.Load(); n != 0 {
				t.Errorf("the silent master has answered %d calls", n)
			}
			proxies.To(silent).Heal()
			waiting.Wait()
		})
	}
}

// The first call of all is for the silent master.
func testMasterSilentFromTheStart(t *testing.T, cluster *redistest.Cluster) {
	t.Helper()
	proxies, tokens := storetest.NewClusterProxies(t, cluster), &storetest.Tokens{Last: 2000}
	s := newStore(t, proxies.Client(t, storetest.SlowClusterReads))
	tags, silent := storetest.TagsOf(t, cluster), cluster.Masters()[0]
	release, held := proxies.To(silent).HoldCommand(redistest.Named("SET"))
	t.Cleanup(release)
	answered := make(chan error, 1)
	first := tokens.Request(tags[silent] + "start")
	first.Bound = storetest.LongBound
	go func() { answered <- take(s, first) }()
	suite.Receive(t, "the first command is held", held)
	begun := time.Now()
	for master, tag := range tags {
		if master == silent {
			continue
		}
		for i := range 4 {
			r, done := tokens.Request(fmt.Sprint(tag, "start", i)), make(chan error, 1)
			r.Bound = storetest.LongBound
			go func() { done <- take(s, r) }()
			if err := suite.Receive(t, "an answer of another master", done); err != nil {
				t.Error(err)
			}
		}
	}
	if took := time.Since(begun); took > storetest.Patience {
		t.Errorf("the other masters took %v", took)
	}
	if len(answered) != 0 {
		t.Error("the silent master has answered")
	}
	release()
	if err := suite.Receive(t, "the answer to the first call", answered); err != nil {
		t.Error(err)
	}
}
