package pipeline

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestLostReplyIsSurvived(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]redistest.Mode{"connection closed": redistest.CloseConn, "connection open": redistest.KeepConn} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, proxy, direct := behindProxy(t, storetest.LongReads)
			t.Cleanup(proxy.Cut) // Close waits for the first send, whose reply may be lost on an open connection
			sent := make(chan time.Time, 10)
			s.pipeline.rdb.(*redis.Client).AddHook(storetest.BeforeEach{Before: func(context.Context) { sent <- time.Now() }})
			r, answered := storetest.Request(storetest.Me1), make(chan result, 1)
			r.Bound = storetest.LongBound

			dropped := proxy.DropReply(redistest.Named("SET"), mode)
			s.testStore.Take(r, func(answer store.Answer, err error) { answered <- result{answer, err} })
			suite.Receive(t, "the reply is lost", dropped)
			if mode == redistest.KeepConn {
				resendNow(s)
			}
			got := suite.Receive(t, "an answer", answered)
			if got.err != nil || !got.answer.Granted {
				t.Fatalf("take: %+v", got)
			}
			if since := got.answer.Since.Sub(suite.Receive(t, "the time of the first send", sent)); since > 0 {
				t.Errorf("the lease counts from %v after the first send, which took the key", since)
			}
			storetest.State{Value: storetest.Me1, TTL: storetest.TTL}.Check(t, direct)
		})
	}
}

func TestCommandIsSentAtMostTwice(t *testing.T) {
	t.Parallel()
	s, proxy, _ := behindProxy(t)
	proxy.ResetCommands()
	first := proxy.DropReply(redistest.Named("SET"), redistest.CloseConn)
	second := proxy.DropReply(redistest.Named("SET"), redistest.CloseConn)
	_, err := s.Take(t.Context(), storetest.Request(storetest.Me1))
	var fault *store.Fault
	if !errors.As(err, &fault) || !fault.Unknown || !fault.Temporary {
		t.Errorf("got %v", err)
	}
	suite.AwaitClosed(t, "the first reply is lost", first)
	suite.AwaitClosed(t, "the second reply is lost", second)
	if n := proxy.Commands()["SET"]; n != 2 {
		t.Errorf("SET was sent %d times, want 2", n)
	}
}

func TestSilentServerFailsAtDeadline(t *testing.T) {
	t.Parallel()
	s, proxy, _ := behindProxy(t, storetest.LongReads)
	t.Cleanup(proxy.HealDropped)
	proxy.Partition()
	r := storetest.Request(storetest.Me1)
	r.Bound = 200 * time.Millisecond
	begun := time.Now()
	_, err := s.Take(t.Context(), r)
	fault := storetest.AsFault(t, err)
	if took := time.Since(begun); took > r.Bound+storetest.Patience {
		t.Errorf("took %v, the bound is %v", took, r.Bound)
	}
	if !fault.Unknown || !fault.Temporary || !errors.Is(fault, command.ErrNoReply) {
		t.Errorf("%+v", fault)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := s.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close while a batch is in flight: %v", err)
	}
}

func TestLateGrantIsReported(t *testing.T) {
	t.Parallel()
	s, proxy, direct := behindProxy(t, storetest.LongReads)
	grants := make(chan [2]string, 2)
	s.OnLateGrant(func(key, token string) { grants <- [2]string{key, token} })
	first, second, err := holdBothSends(t, s, proxy, "SET", takeLong(t, s))
	if fault := storetest.AsFault(t, err); !fault.Unknown {
		t.Errorf("%+v", fault)
	}
	storetest.State{}.Check(t, direct)
	first()
	if got := suite.Receive(t, "a late grant", grants); got != [2]string{"k", storetest.Me1} {
		t.Errorf("late grant %v", got)
	}
	storetest.State{Value: storetest.Me1, TTL: storetest.TTL}.Check(t, direct)
	second() // the command finds the token of its request, which is a grant, too
	suite.Receive(t, "the second late grant", grants)
}

// takeLong returns a function that takes a key, with a bound that does not end during the
// test.
func takeLong(t *testing.T, s *syncStore) func() error {
	t.Helper()
	r := storetest.Request(storetest.Me1)
	r.Bound = storetest.LongBound
	return func() error {
		_, err := s.Take(t.Context(), r)
		return err
	}
}

func TestLateRefusalIsNotReported(t *testing.T) {
	t.Parallel()
	s, proxy, direct := behindProxy(t, storetest.LongReads)
	s.OnLateGrant(func(key, token string) { t.Errorf("late grant %q %q", key, token) })
	first, second, err := holdBothSends(t, s, proxy, "SET", takeLong(t, s))
	_ = storetest.AsFault(t, err)
	storetest.State{Value: "other", TTL: storetest.TTL}.Put(t, direct)
	first()
	second()
	if err := s.Close(t.Context()); err != nil { // Close waits for both replies
		t.Fatal(err)
	}
}
