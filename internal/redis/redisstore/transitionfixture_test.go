package redisstore

import (
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// outcome is the answer to a transition.
type outcome struct {
	granted   bool // or held
	waiting   int
	holder    string
	remaining time.Duration
	foreign   bool // the holder sends no hint
	status    store.ReleaseStatus

	// These are set only for an attempt.
	verdict store.Verdict
	record  string
	number  int
	running bool
	stored  store.RecordStatus
	// unreported is the name of the attempt that died, if that was not reported yet.
	unreported string

	// These are set only for what an operator does.
	resolved store.ResolveStatus
	read     store.Outcome
}

// A transition calls the store once and returns the outcome.
type transition func(*testing.T, *syncStore) outcome

// checkSince fails the test unless a lease counts from a time between the request and now.
func checkSince(t *testing.T, since, asked time.Time) {
	t.Helper()
	if since.Before(asked) || time.Since(since) < 0 {
		t.Errorf("the lease counts from %v, the request was sent at %v", since, asked)
	}
}

// outcomeOf returns the answer of a request, which was sent at this time, as an outcome.
func outcomeOf(t *testing.T, asked time.Time, got store.Answer, err error) outcome {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if got.Granted {
		checkSince(t, got.Since, asked)
	}
	if got.Fence != 0 {
		t.Errorf("fence %d, although none was wanted", got.Fence)
	}
	return outcome{
		granted: got.Granted, waiting: got.Waiting, holder: got.Holder, remaining: got.Remaining, foreign: got.ForeignHolder,
		verdict: got.Verdict, record: string(got.Record), number: got.Number, running: got.Running, unreported: got.Unreported,
	}
}

func take(t *testing.T, s *syncStore) outcome {
	t.Helper()
	asked := time.Now()
	got, err := s.Take(t.Context(), storetest.Request(storetest.Me1))
	return outcomeOf(t, asked, got, err)
}

func enqueue(t *testing.T, s *syncStore) outcome {
	t.Helper()
	asked := time.Now()
	got, err := s.Enqueue(t.Context(), storetest.Request(storetest.Me1))
	return outcomeOf(t, asked, got, err)
}

func nowait(t *testing.T, s *syncStore) outcome {
	t.Helper()
	r := storetest.Request(storetest.Me1)
	r.Join = false
	asked := time.Now()
	got, err := s.Enqueue(t.Context(), r)
	return outcomeOf(t, asked, got, err)
}

func renew(t *testing.T, s *syncStore) outcome {
	t.Helper()
	asked := time.Now()
	got, err := s.Renew(t.Context(), storetest.Request(storetest.Me1))
	if err != nil {
		t.Fatal(err)
	}
	checkSince(t, got.Since, asked)
	return outcome{granted: got.Held, waiting: got.Waiting}
}

func release(t *testing.T, s *syncStore) outcome {
	t.Helper()
	got, err := s.Release(t.Context(), storetest.Request(storetest.Me1))
	if err != nil {
		t.Fatal(err)
	}
	return outcome{status: got.Status}
}

func rejoin(t *testing.T, s *syncStore) outcome {
	t.Helper()
	r := storetest.Request(storetest.Me1)
	r.Rejoin = storetest.Me2
	asked := time.Now()
	got, err := s.Release(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if got.Status == store.Kept {
		checkSince(t, got.Since, asked)
	}
	return outcome{status: got.Status}
}

// inModeB runs a transition in mode B of queue.lua, in which the subscribers of a channel
// cannot be counted.
func inModeB(do transition) transition {
	return func(t *testing.T, s *syncStore) outcome {
		t.Helper()
		s.setMode("B")
		return do(t, s)
	}
}
