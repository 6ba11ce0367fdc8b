package redisstore

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// errNoReply is the fault of a command that outlived its bound.
var errNoReply = errors.New("no reply within the command timeout")

// single is a command that go-redis must not repeat by itself; see the package
// comment.
type single struct{ *redis.Cmd }

// NoRetry forbids go-redis to send the command again.
func (single) NoRetry() bool { return true }

// sendOnce sends one command once. keyPos is where its key stands, for the
// routing of a cluster client. A nil reply is a nil value and no error.
func sendOnce(ctx context.Context, rdb redis.UniversalClient, keyPos int8, args ...any) (any, error) {
	cmd := redis.NewCmd(ctx, args...)
	cmd.SetFirstKeyPos(keyPos)
	err := rdb.Process(ctx, single{cmd})
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	return cmd.Val(), err
}

// A call is one transition, ready to be sent: it must be safe to run twice.
type call func(ctx context.Context) (any, error)

// A reply is what one send of a call brought back.
type reply struct {
	value any
	err   error
	sent  time.Time
}

// An exchange is a call with its sends.
type exchange struct {
	replies chan reply // one for each send
	sends   int        // sends begun
	open    int        // sends without a reply yet
	blind   bool       // a send failed in a way that does not say whether it was applied
}

// exchange runs the call and returns its reply within bound. It sends at most
// twice: the second time when the first send fails in transport, or has brought
// no reply in half of the bound, which is how a lost reply is survived. The
// first reply of the server decides. The exchange may still have open sends
// then; their replies are to come.
//
// The sends run beside the caller, so that neither a slow server nor a client
// that ignores its context holds the caller beyond the bound.
func (s *Store) exchange(ctx context.Context, bound time.Duration, do call) (reply, *exchange) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound)
	defer cancel()
	x := &exchange{replies: make(chan reply, 2)}
	s.send(ctx, x, do)

	resend := time.NewTimer(bound / 2)
	defer resend.Stop()
	for {
		select {
		case r := <-x.replies:
			x.open--
			if r.err == nil || !isTransport(r.err) {
				return r, x
			}
			x.blind = x.blind || !neverSent(r.err)
			switch {
			case x.sends < 2:
				s.send(ctx, x, do)
			case x.open == 0:
				return r, x
			}
		case <-resend.C:
			if x.sends < 2 {
				s.send(ctx, x, do)
			}
		case <-ctx.Done():
			return reply{err: errNoReply}, x
		}
	}
}

// send runs the call once beside the caller and puts its reply on x.replies.
func (s *Store) send(ctx context.Context, x *exchange, do call) {
	x.sends++
	x.open++
	s.work.Add()
	go func() {
		defer s.work.Done()
		r := reply{sent: time.Now()}
		r.value, r.err = do(ctx)
		x.replies <- r
	}()
}

// uncertain reports whether a send other than the answered one may have been
// applied, or may yet be.
func (x *exchange) uncertain() bool { return x.blind || x.open > 0 }

// watchLate tells the hint function when a send that was left behind turns out
// to have taken the key.
func (s *Store) watchLate(x *exchange, key, token string, won func(reply) bool) {
	if x.open == 0 {
		return
	}
	s.work.Add()
	go func(open int) { // x is the caller's
		defer s.work.Done()
		for range open {
			if won(<-x.replies) {
				s.hint(key, token)
			}
		}
	}(x.open)
}
