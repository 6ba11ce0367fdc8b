package quorumstore

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
)

// New names the client that cannot be used, or the wrong prefix. It leaves no client open.
func TestNew(t *testing.T) {
	t.Parallel()
	var clients []redis.UniversalClient
	for _, addr := range []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"} {
		client := redis.NewClient(&redis.Options{Addr: addr})
		t.Cleanup(func() { _ = client.Close() })
		clients = append(clients, client)
	}
	s, err := New(clients, "", "process", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if s.majority != 2 || s.hints.majority != 2 || len(s.servers) != 3 || len(s.Clients()) != 3 || s.Duplicate() != nil {
		t.Errorf("a majority of %d, %d servers, %d clients", s.majority, len(s.servers), len(s.Clients()))
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := s.Disconnect(); err != nil {
		t.Error(err)
	}
	for _, client := range s.Clients() {
		if err := client.Ping(t.Context()).Err(); err == nil || !strings.Contains(err.Error(), "closed") {
			t.Errorf("a client after Disconnect: %v", err)
		}
	}
	for want, c := range map[string]struct {
		clients []redis.UniversalClient
		prefix  string
	}{
		"client 1 is nil":        {[]redis.UniversalClient{clients[0], nil, clients[2]}, ""},
		"WithPrefix: the prefix": {clients, "{half"},
	} {
		if _, err := New(c.clients, c.prefix, "process", time.Second); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// Close returns the error of a server.
func TestCloseReturnsFailure(t *testing.T) {
	t.Parallel()
	s, fakes := newStore(3)
	fakes[1].closing = errTemporary
	if err := s.Close(t.Context()); err != errTemporary { //nolint:errorlint // the very error
		t.Errorf("got %v", err)
	}
}

// A quorum reports a permanent fault instead of reading or resolving an attempt, and instead of
// granting a shared lease. Close waits for that.
func TestQuorumRefusesWhatNeedsOneServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := newStore(3)
		var resolved outcome[store.ResolveStatus]
		s.Resolve(store.ResolveRequest{}, resolved.take)
		var read outcome[store.Outcome]
		s.Outcome(store.OutcomeRequest{}, read.take)
		var shared outcome[store.Answer]
		s.Enqueue(store.EnqueueRequest{Target: store.Target{Limit: 3}}, shared.take)
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		for name, got := range map[string]struct {
			times int
			err   error
		}{"resolve": {resolved.times, resolved.err}, "outcome": {read.times, read.err}, "shared": {shared.times, shared.err}} {
			if fault := store.FaultOf(got.err); got.times != 1 || got.err == nil || fault.Temporary || fault.Unknown {
				t.Errorf("%s: done was called %d times: %v", name, got.times, got.err)
			}
		}
	})
}

func TestMajorityIsUnserved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, fakes := newStore(5)
		s.Watch()
		var times []time.Time
		for i, f := range fakes {
			if !f.watched {
				t.Errorf("server %d is not watched", i)
			}
			time.Sleep(time.Second)
			times = append([]time.Time{time.Now()}, times...) // the last server failed first
		}
		for _, i := range []int{3, 1} {
			fakes[i].unserved = times[i]
			if since, why := s.Unserved("k"); !since.IsZero() || why != nil {
				t.Errorf("a majority serves, and since %v: %v", since, why)
			}
		}
		fakes[4].unserved = times[4]
		since, why := s.Unserved("k")
		if !since.Equal(times[1]) || !strings.HasPrefix(why.Error(), "no majority: 3 of 5 servers failed") {
			t.Errorf("since %v, want %v: %v", since, times[1], why)
		}
		fakes[0].unserved = times[0]
		if since, _ := s.Unserved("k"); !since.Equal(times[1]) {
			t.Errorf("the majority is missing since %v, want %v", since, times[1])
		}
	})
}
