package redisstore

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/pipeline"
	"github.com/reqlock/reqlock/internal/redis/script"
	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// soakEnv names the variable with the duration of the soak, such as "2m".
const soakEnv = "REQLOCK_SOAK"

// The TTL and the claim are short, so that leases are lost and grants expire.
const (
	shortTTL   = 60 * time.Millisecond
	shortClaim = 30 * time.Millisecond
	margin     = 5 * time.Millisecond // a lease counts as expired this long before its end
)

// An attemptSoak makes attempts with the stores of several processes, among random faults. It
// counts what happened.
type attemptSoak struct {
	stores []*Store
	direct *redis.Client
	*randomFaults
	tokens atomic.Int64

	runs, reruns, commits, restored, refused, replays, interrupted, busy, deaths, resolved atomic.Int64
}

// allHappened reports whether each kind of event has happened at least once.
func (w *attemptSoak) allHappened() bool {
	for _, n := range [...]*atomic.Int64{
		&w.runs, &w.reruns, &w.commits, &w.restored, &w.refused, &w.replays, &w.interrupted, &w.busy, &w.deaths, &w.resolved,
		&w.late, &w.lost,
	} {
		if n.Load() == 0 {
			return false
		}
	}
	return true
}

// Whatever faults happen, a request has at most one answer, the answer does not change, and no
// attempt runs beside another one or after the answer.
func TestAttemptsAmongRandomFaults(t *testing.T) {
	t.Parallel()
	usually := "300ms" // the full tier makes more random attempts
	if suite.IsFull() {
		usually = "2s"
	}
	lasts, err := time.ParseDuration(cmp.Or(os.Getenv(soakEnv), usually))
	if err != nil {
		t.Fatalf("%s: %v", soakEnv, err)
	}
	server := redistest.Reuse(t)
	w := &attemptSoak{direct: server.Client(t)}
	w.randomFaults = &randomFaults{direct: w.direct, begin: script.New(false).Begin}
	rdb := server.Client(t)
	rdb.AddHook(w.randomFaults)
	for i, width := range []int{1, 7, pipeline.Width, pipeline.Width} {
		s, err := newOfWidth(rdb, "p:", fmt.Sprintf("%032x", i), command.Replicas{}, width)
		if err != nil {
			t.Fatal(err)
		}
		storetest.CloseAtEnd(t, s)
		ready, stop := s.Listen("all") // all keys share one subscription
		defer stop()
		suite.AwaitClosed(t, "the process is subscribed", ready)
		w.stores = append(w.stores, s)
	}
	begun := time.Now()
	var keys atomic.Int64
	var group sync.WaitGroup
	for i := range 6 {
		group.Go(func() {
			for (time.Since(begun) < lasts || !w.allHappened()) && !t.Failed() && t.Context().Err() == nil {
				k := &history{name: fmt.Sprint("key", keys.Add(1)), rerun: i%2 == 0}
				w.contend(t, k)
				k.check(t, w)
			}
		})
	}
	group.Wait()
	w.delayed.Wait()
	t.Logf("%d keys, %d runs, %d of them reruns, %d commits, %d restored, %d refused, %d replays, %d interrupted, %d busy, %d deaths, "+
		"%d resolved, %d replies lost, %d commands late", keys.Load(), w.runs.Load(), w.reruns.Load(), w.commits.Load(),
		w.restored.Load(), w.refused.Load(), w.replays.Load(), w.interrupted.Load(), w.busy.Load(), w.deaths.Load(), w.resolved.Load(),
		w.lost.Load(), w.late.Load())
}

// contend makes attempts on one key from all processes.
func (w *attemptSoak) contend(t *testing.T, k *history) {
	t.Helper()
	var group sync.WaitGroup
	for i := range 2 * len(w.stores) {
		s := &syncStore{Store: w.stores[i%len(w.stores)], tb: t}
		group.Go(func() {
			for range 12 {
				if w.nowait(t, s, k) && chance(50) {
					return
				}
			}
		})
	}
	group.Wait()
}

// attempt makes one attempt, and reports whether the request is answered.
func (w *attemptSoak) nowait(t *testing.T, s *syncStore, k *history) (answered bool) {
	t.Helper()
	a := k.add(fmt.Sprintf("%s:%d", s.process, w.tokens.Add(1)))
	r := k.request(a)
	r.Join = chance(70)
	for range 8 {
		asked, done := time.Now(), k.knownAnswer()
		got, err := s.Enqueue(t.Context(), r)
		switch {
		case err != nil:
			k.mayHaveBegun(a)
			if chance(70) {
				continue
			}
			w.abort(t, s, k, a, r)
			return false
		case got.Verdict == store.Done || got.Verdict == store.Sealed:
			w.replays.Add(1)
			w.end(k, a)
			k.checkAnswer(t, cmp.Or(string(got.Record), sealedAnswer))
			return true
		case got.Verdict == store.Interrupted:
			w.interrupted.Add(1)
			w.end(k, a)
			k.reportsDeath(a, asked)
			if chance(20) {
				w.forget(t, s, r)
			}
			return false
		case got.Verdict != store.Undecided:
			t.Errorf("%s: verdict %v", k.name, got.Verdict)
			return false
		case got.Granted:
			k.mayHaveBegun(a)
			if done != "" {
				t.Errorf("%s: granted after it was answered with %q", k.name, done)
			}
			if got.Number > 1 {
				w.reruns.Add(1)
				k.reportsDeath(a, a.asked)
			}
			w.run(t, s, k, a, r, got.Since)
			return false
		}
		w.busy.Add(1)
		time.Sleep(time.Millisecond)
	}
	w.abort(t, s, k, a, r)
	return false
}

// forget resolves the request of the attempt that has died by Forget. Another attempt may have
// begun meanwhile.
func (w *attemptSoak) forget(t *testing.T, s *syncStore, r storetest.AnyRequest) {
	t.Helper()
	seen, err := s.Outcome(t.Context(), r)
	if err != nil || seen.State != store.Unknown {
		return
	}
	r.Seen, r.Resolution, r.Keep = seen.Attempt, store.Forget, storetest.Keep
	if status, err := s.Resolve(t.Context(), r); err == nil && status == store.Resolved {
		w.resolved.Add(1)
	}
}

// run runs the attempt for a random time, which may be longer than its lease, and ends it.
func (w *attemptSoak) run(t *testing.T, s *syncStore, k *history, a *attempt, r storetest.AnyRequest, since time.Time) {
	t.Helper()
	if !k.enter(t, a, since.Add(shortTTL)) { // the lease has expired already
		w.abort(t, s, k, a, r)
		return
	}
	w.runs.Add(1)
	if chance(15) {
		drop.Run(t.Context(), w.direct, []string{"{p:" + k.name + "}:r"}, a.token)
	}
	switch dice := rand.IntN(100); {
	case dice < 13:
		w.deaths.Add(1)
		k.leave(a)
		return
	case dice < 26:
		time.Sleep(shortTTL + margin)
	default:
		time.Sleep(rand.N(10 * time.Millisecond))
	}
	k.leave(a)
	switch dice := rand.IntN(100); {
	case dice < 30:
		w.abort(t, s, k, a, r)
		return
	case dice < 35: // its outcome stays unknown
		k.releases(a)
		r.Attempt = nil
		_, _ = s.Release(t.Context(), r)
		return
	case dice < 40:
		r.Ending = store.Seal
	default:
		r.Ending, r.Record = store.Commit, []byte("answer of "+a.token)
	}
	for range 4 {
		running := k.running()
		released, err := s.Release(t.Context(), r)
		switch {
		case err != nil:
			continue
		case released.Record == store.NotStored:
			w.refused.Add(1)
			return
		case released.Record == store.Restored:
			w.restored.Add(1)
		}
		w.commits.Add(1)
		k.end(a)
		k.checkAnswer(t, cmp.Or(string(r.Record), sealedAnswer))
		if running != nil && k.running() == running {
			t.Errorf("%s: the answer of %s was stored while %s ran", k.name, a.token, running.token)
		}
		return
	}
}

// abort aborts an attempt.
func (w *attemptSoak) abort(t *testing.T, s *syncStore, k *history, a *attempt, r storetest.AnyRequest) {
	t.Helper()
	r.Ending = store.Abort
	for range 4 {
		released, err := s.Release(t.Context(), r)
		if err != nil {
			continue
		}
		if !k.countedAsDead(a, released.Record) {
			w.end(k, a)
		}
		return
	}
}

// end records that the attempt has ended. Exception: if a delayed begin of the attempt may still
// run, after the record of another abort has replaced the record of its own abort.
func (w *attemptSoak) end(k *history, a *attempt) {
	if _, delayedBegins := w.delayedBegins.Load(a.token); !delayedBegins {
		k.end(a)
	}
}

// drop deletes the record of an attempt that runs.
var drop = redis.NewScript(`if redis.call('HGET', KEYS[1], 't') == ARGV[1] then redis.call('DEL', KEYS[1]) end return 0`)
