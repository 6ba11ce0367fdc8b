package redisstore

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// theSeal stands for the answer that was not kept.
const theSeal = "sealed"

// A history is what is known of the attempts on one key.
type history struct {
	name  string
	rerun bool

	mu        sync.Mutex
	attempts  []*made
	inside    *made  // who runs
	committed string // the answer, once it is known
	blamed    []blame
}

// A made is an attempt that was made.
type made struct {
	token string
	asked time.Time // when it was first sent
	began bool      // it may have begun: it was granted, or a reply was lost
	until time.Time // until then the key is surely its own, if it ever was
	ended time.Time // when it was known to be over, so that it cannot be taken for dead
}

// A blame is an answer that says that another attempt has died.
type blame struct {
	by       *made
	from, to time.Time // it was asked for, and had come
}

// begin notes that an attempt is made.
func (k *history) begin(token string) *made {
	now := time.Now()
	a := &made{token: token, asked: now, until: now.Add(shortTTL)}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.attempts = append(k.attempts, a)
	return a
}

// request is with what an attempt begins.
func (k *history) request(a *made) storetest.AnyRequest {
	return storetest.AnyRequest{
		Key: k.name, Token: a.token, TTL: shortTTL, Claim: shortClaim, Bound: 5 * time.Second,
		Attempt: &store.Attempt{Fingerprint: []byte("print"), Keep: storetest.Keep, Rerun: k.rerun},
	}
}

// enter notes that an attempt runs, and reports whether it may. Nobody may run
// beside it.
func (k *history) enter(t *testing.T, a *made, until time.Time) bool {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	a.until = until
	now := time.Now()
	if now.After(until.Add(-margin)) {
		return false
	}
	if b := k.inside; b != nil && now.Before(b.until.Add(-margin)) {
		t.Errorf("%s: %s runs beside %s, which is valid for %v", k.name, a.token, b.token, b.until.Sub(now))
	}
	k.inside = a
	return true
}

// leave notes that an attempt does not run any more.
func (k *history) leave(a *made) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.inside == a {
		k.inside = nil
	}
}

// runner returns the attempt that runs, and whose lease is valid; nil is none.
func (k *history) runner() *made {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.inside == nil || time.Now().After(k.inside.until.Add(-margin)) {
		return nil
	}
	return k.inside
}

// leaves notes that an attempt gives up the key, and leaves its outcome unknown.
func (k *history) leaves(a *made) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := time.Now(); now.Before(a.until) {
		a.until = now
	}
}

// over notes that an attempt is over.
func (k *history) over(a *made) {
	k.mu.Lock()
	defer k.mu.Unlock()
	a.ended = time.Now()
}

// begins notes that an attempt may have begun.
func (k *history) begins(a *made) {
	k.mu.Lock()
	defer k.mu.Unlock()
	a.began = true
}

// buried reports whether an attempt that was told that the record is another's may
// have been taken for dead before. It stays dead when the other one is aborted.
func (k *history) buried(a *made, stored store.RecordStatus) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return a.began && stored == store.NotStored
}

// answer returns the answer, or "" while none is known.
func (k *history) answer() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.committed
}

// answered notes an answer. There is only one.
func (k *history) answered(t *testing.T, answer string) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.committed == "" {
		k.committed = answer
	}
	if k.committed != answer {
		t.Errorf("%s: answered with %q, and with %q", k.name, k.committed, answer)
	}
}

// blames notes that an attempt, which has asked then, was told that another one
// has died.
func (k *history) blames(by *made, asked time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.blamed = append(k.blamed, blame{by, asked, time.Now()})
}

// check fails the test if an attempt was blamed that did not die, or if a key
// would stay for ever.
func (k *history) check(t *testing.T, w *world) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, b := range k.blamed {
		if !k.founded(b) {
			t.Errorf("%s: %s was told that another one has died, but none has", k.name, b.by.token)
		}
	}
	for _, key := range [...]string{"p:" + k.name, "{p:" + k.name + "}:q", "{p:" + k.name + "}:r"} {
		if life := w.direct.PTTL(t.Context(), key).Val(); life == -1 {
			t.Errorf("%s has no end", key)
		}
	}
}

// founded reports whether there was an attempt that may have been taken for dead:
// it had lost the key, and was not known to be over.
func (k *history) founded(b blame) bool {
	for _, a := range k.attempts {
		lost, over := a.until.Before(b.to), !a.ended.IsZero() && a.ended.Before(b.from)
		if a != b.by && lost && !over {
			return true
		}
	}
	return false
}

// An attempt that is aborted too late has been taken for dead, and is again by those who
// come after its successor, if that is aborted.
func TestADeathOutlivesALateAbort(t *testing.T) {
	t.Parallel()
	s, err := New(redistest.Start(t).Client(t), "p:", fmt.Sprintf("%032x", 0), command.Replicas{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	w, to, k := &world{mishaps: &mishaps{}}, &syncStore{Store: s}, &history{name: "key", rerun: true}
	run := func(token string) (a *made, number int) {
		a = k.begin(token)
		k.begins(a)
		suite.Eventually(t, token+" may run", func() bool {
			answer, err := to.Enqueue(t.Context(), k.request(a))
			number = answer.Number
			return err == nil && answer.Granted
		})
		return a, number
	}
	dead, _ := run("dead")
	next, number := run("next")
	if number != 2 {
		t.Fatalf("number %d after one that died", number)
	}
	w.abort(t, to, k, dead, k.request(dead))
	w.abort(t, to, k, next, k.request(next))
	last, number := run("last")
	if number != 2 {
		t.Fatalf("number %d: the death is forgotten", number)
	}
	if !k.founded(blame{last, last.asked, time.Now()}) {
		t.Error("nobody is known to have died")
	}
}
