package core

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A wrapper is a client of its own. It cannot be compared.
type wrapper struct {
	*redis.Client
	_ []int
}

// An opener makes Lockers of one client, and counts their warnings.
type opener struct {
	t        *testing.T
	rdb      *redis.Client
	others   []redis.UniversalClient // of a quorum
	warnings int
}

func (o *opener) open(client redis.UniversalClient, opts ...Option) *Locker {
	return Must(New(client, append(opts, WithObserver(o.observe))...))
}

func (o *opener) openQuorum() *Locker {
	for len(o.others) < 2 {
		client := redis.NewClient(&redis.Options{})
		o.t.Cleanup(func() { _ = client.Close() })
		o.others = append(o.others, client)
	}
	return Must(NewQuorum(append(o.others, o.rdb), WithObserver(o.observe)))
}

func (o *opener) observe(e Event) {
	o.warnings++
	if e.Kind != Warned || !strings.Contains(e.Err.Error(), "make one Locker for the process") {
		o.t.Errorf("event: %+v", e)
	}
}

// end closes Lockers.
func (o *opener) end(lockers ...*Locker) {
	for _, l := range lockers {
		if err := l.Close(context.Background()); err != nil {
			o.t.Error(err)
		}
	}
}

// awaitCollected returns once the garbage collector has made it true.
func awaitCollected(t *testing.T, what string, isGone func() bool) {
	t.Helper()
	suite.Eventually(t, what, func() bool {
		runtime.GC()
		return isGone()
	})
}

// places returns how many places of a client are left.
func places(client weak.Pointer[byte]) (n int) {
	open.mu.Lock()
	defer open.mu.Unlock()
	for at := range open.places {
		if at.client == client {
			n++
		}
	}
	return n
}

// Of several open Lockers with one client and one prefix, the second one warns. The process keeps
// nothing about Lockers that are gone, and a warning as long as its client.
func TestSecondLockerOfAClientWarns(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		use      func(o *opener)
		warnings int // and places that are left
	}{
		"closed": {func(o *opener) { o.end(o.open(o.rdb)); o.end(o.open(o.rdb)) }, 0},
		"collected": {func(o *opener) {
			for range 2 {
				first := weak.Make(o.open(o.rdb).registration)
				awaitCollected(o.t, "the Locker is collected", func() bool { return first.Value() == nil })
			}
		}, 0},
		"one for each request": {func(o *opener) {
			for range 100 {
				defer o.end(o.open(o.rdb).With(WithFencing(true)))
			}
		}, 1},
		"others after the warning": {func(o *opener) {
			o.end(o.open(o.rdb), o.open(o.rdb))
			o.end(o.open(o.rdb), o.open(o.rdb))
		}, 1},
		"another prefix, and a closed one": {func(o *opener) {
			first, other := o.open(o.rdb), o.open(o.rdb, WithPrefix("other:"))
			o.end(first, o.open(o.rdb, WithPrefix("third:")))
			o.end(o.open(o.rdb), other)
		}, 0},
		"wrappers": {func(o *opener) {
			one, other := &wrapper{Client: o.rdb}, &wrapper{Client: o.rdb}
			o.end(o.open(o.rdb), o.open(one), o.open(other), o.open(*one), o.open(*one))
		}, 0},
		"a quorum": {func(o *opener) { o.end(o.openQuorum(), o.openQuorum(), o.open(o.rdb)) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &opener{t: t, rdb: redis.NewClient(&redis.Options{})}
			test.use(o)
			client := weak.Make(addressOf(o.rdb))
			awaitCollected(t, "the Lockers are forgotten", func() bool { return places(client) == test.warnings })
			if o.warnings != test.warnings {
				t.Errorf("%d warnings, want %d", o.warnings, test.warnings)
			}
			_ = o.rdb.Close()
			o.rdb = nil
			awaitCollected(t, "the client is forgotten", func() bool { return places(client) == 0 })
		})
	}
}
