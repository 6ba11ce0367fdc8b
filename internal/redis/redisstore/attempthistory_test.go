package redisstore

import (
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

// sealedAnswer stands for the answer of a sealed request, which is not stored.
const sealedAnswer = "sealed"

// A history has the attempts on one key, and checks them.
type history struct {
	name  string
	rerun bool

	mu           sync.Mutex
	attempts     []*attempt
	current      *attempt // the attempt that runs
	committed    string   // the answer; "" while it is unknown
	deathReports []deathReport
}

// An attempt is one attempt on the key of a history.
type attempt struct {
	token string
	asked time.Time // when its begin was first sent
	began bool      // it may have begun: it was granted, or a reply was lost
	until time.Time // if it ever held the key, it holds it until then
	ended time.Time // when it had certainly ended, so that it cannot count as dead any more
}

// A deathReport is an answer that says that another attempt has died.
type deathReport struct {
	by       *attempt
	from, to time.Time // when it was requested, and when it arrived
}

// add adds an attempt.
func (k *history) add(token string) *attempt {
	now := time.Now()
	a := &attempt{token: token, asked: now, until: now.Add(shortTTL)}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.attempts = append(k.attempts, a)
	return a
}

// request returns the request to begin the attempt.
func (k *history) request(a *attempt) storetest.AnyRequest {
	return storetest.AnyRequest{
		Key: k.name, Token: a.token, TTL: shortTTL, Claim: shortClaim, Bound: 5 * time.Second,
		Attempt: &store.Attempt{Fingerprint: []byte("print"), Keep: storetest.Keep, Rerun: k.rerun},
	}
}

// enter records that an attempt runs, and reports whether its lease is valid. It fails the test
// if another attempt runs with a valid lease.
func (k *history) enter(t *testing.T, a *attempt, until time.Time) bool {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	a.until = until
	now := time.Now()
	if now.After(until.Add(-margin)) {
		return false
	}
	if b := k.current; b != nil && now.Before(b.until.Add(-margin)) {
		t.Errorf("%s: %s runs beside %s, which is valid for %v", k.name, a.token, b.token, b.until.Sub(now))
	}
	k.current = a
	return true
}

// leave records that an attempt does not run any more.
func (k *history) leave(a *attempt) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.current == a {
		k.current = nil
	}
}

// running returns the attempt that runs with a valid lease, or nil.
func (k *history) running() *attempt {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.current == nil || time.Now().After(k.current.until.Add(-margin)) {
		return nil
	}
	return k.current
}

// releases records that an attempt releases the key, with an unknown outcome.
func (k *history) releases(a *attempt) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := time.Now(); now.Before(a.until) {
		a.until = now
	}
}

// end records that an attempt has ended.
func (k *history) end(a *attempt) {
	k.mu.Lock()
	defer k.mu.Unlock()
	a.ended = time.Now()
}

// mayHaveBegun records that an attempt may have begun.
func (k *history) mayHaveBegun(a *attempt) {
	k.mu.Lock()
	defer k.mu.Unlock()
	a.began = true
}

// countedAsDead reports whether an attempt, with the answer that the record belongs to another
// attempt, may have counted as dead before. It still counts as dead after the other attempt is
// aborted.
func (k *history) countedAsDead(a *attempt, stored store.RecordStatus) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return a.began && stored == store.NotStored
}

// knownAnswer returns the answer, or "" while it is unknown.
func (k *history) knownAnswer() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.committed
}

// checkAnswer records the answer. It fails the test if there was another one before.
func (k *history) checkAnswer(t *testing.T, answer string) {
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

// reportsDeath records that an attempt had the answer that another attempt has died.
func (k *history) reportsDeath(by *attempt, asked time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.deathReports = append(k.deathReports, deathReport{by, asked, time.Now()})
}

// check fails the test if a death was reported without a dead attempt, or if a key has no TTL.
func (k *history) check(t *testing.T, w *attemptSoak) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.deathReports {
		if !k.isTrue(r) {
			t.Errorf("%s: the answer to %s is that another attempt has died, but none has", k.name, r.by.token)
		}
	}
	for _, key := range [...]string{"p:" + k.name, "{p:" + k.name + "}:q", "{p:" + k.name + "}:r"} {
		if w.direct.PTTL(t.Context(), key).Val() == -1 {
			t.Errorf("%s has no TTL", key)
		}
	}
}

// isTrue reports whether there was an attempt that may have counted as dead: it had lost the
// key, and had not certainly ended.
func (k *history) isTrue(r deathReport) bool {
	for _, a := range k.attempts {
		lost, ended := a.until.Before(r.to), !a.ended.IsZero() && a.ended.Before(r.from)
		if a != r.by && lost && !ended {
			return true
		}
	}
	return false
}

// An attempt counts as dead once the next attempt has begun. An abort after that changes
// nothing: the death is still reported after the next attempt is aborted, too.
func TestDeathIsReportedDespiteLateAbort(t *testing.T) {
	t.Parallel()
	s, err := New(redistest.Reuse(t).Client(t), "p:", fmt.Sprintf("%032x", 0), command.Replicas{})
	if err != nil {
		t.Fatal(err)
	}
	storetest.CloseAtEnd(t, s)
	w, to, k := &attemptSoak{randomFaults: &randomFaults{}}, &syncStore{Store: s, tb: t}, &history{name: "key", rerun: true}
	run := func(token string) (a *attempt, number int) {
		a = k.add(token)
		k.mayHaveBegun(a)
		suite.Eventually(t, token+" is granted", func() bool {
			answer, err := to.Enqueue(t.Context(), k.request(a))
			number = answer.Number
			return err == nil && answer.Granted
		})
		return a, number
	}
	dead, _ := run("dead")
	next, number := run("next")
	if number != 2 {
		t.Fatalf("number %d after an attempt that died", number)
	}
	w.abort(t, to, k, dead, k.request(dead))
	w.abort(t, to, k, next, k.request(next))
	last, number := run("last")
	if number != 2 {
		t.Fatalf("number %d: the death does not count any more", number)
	}
	if !k.isTrue(deathReport{last, last.asked, time.Now()}) {
		t.Error("the history has no dead attempt")
	}
}
