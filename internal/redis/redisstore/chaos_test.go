package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/script"
	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// soakEnv says how long attempts are made, as in "2m".
const soakEnv = "REQLOCK_SOAK"

// The times of attempts are short, so that leases are lost and grants expire.
const (
	shortTTL   = 60 * time.Millisecond
	shortClaim = 30 * time.Millisecond
	margin     = 5 * time.Millisecond // at the end of a lease
)

// A world is where attempts are made: some processes, and what goes wrong.
type world struct {
	stores []*Store
	direct *redis.Client
	*mishaps
	minted atomic.Int64

	runs, reruns, commits, restored, refused, replays, interrupted, busy, deaths, resolved atomic.Int64
}

// all is false as long as there is something that did not happen.
func (w *world) all() bool {
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

// Whatever goes wrong, a request is answered at most once, its answer stays what
// it was, and nothing runs beside it or after it.
func TestAttemptsAmongMishaps(t *testing.T) {
	t.Parallel()
	usually := "300ms"
	if suite.IsFull() {
		usually = "2s"
	}
	lasts, err := time.ParseDuration(cmp.Or(os.Getenv(soakEnv), usually))
	if err != nil {
		t.Fatalf("%s: %v", soakEnv, err)
	}
	server := redistest.Start(t)
	w := &world{direct: server.Client(t)}
	w.mishaps = &mishaps{direct: w.direct, begin: script.New(false).Begin}
	rdb := server.Client(t)
	rdb.AddHook(w.mishaps)
	for i := range 4 {
		s, err := New(rdb, "p:", fmt.Sprintf("%032x", i), command.Replicas{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close(context.Background()) })
		ready, stop := s.Listen("all") // one subscription is for all keys
		defer stop()
		<-ready
		w.stores = append(w.stores, s)
	}
	begun := time.Now()
	var keys atomic.Int64
	var group sync.WaitGroup
	for i := range 6 {
		group.Go(func() {
			for (time.Since(begun) < lasts || !w.all()) && !t.Failed() && t.Context().Err() == nil {
				k := &history{name: fmt.Sprint("key", keys.Add(1)), rerun: i%2 == 0}
				w.crowd(t, k)
				k.check(t, w)
			}
		})
	}
	group.Wait()
	w.behind.Wait()
	t.Logf("%d keys, %d runs, %d of them again, %d commits, %d restored, %d refused, %d replays, %d interrupted, %d busy, %d deaths, "+
		"%d resolved, %d replies lost, %d commands late", keys.Load(), w.runs.Load(), w.reruns.Load(), w.commits.Load(),
		w.restored.Load(), w.refused.Load(), w.replays.Load(), w.interrupted.Load(), w.busy.Load(), w.deaths.Load(), w.resolved.Load(),
		w.lost.Load(), w.late.Load())
}

// crowd lets clients of all processes try one key.
func (w *world) crowd(t *testing.T, k *history) {
	t.Helper()
	var group sync.WaitGroup
	for i := range 2 * len(w.stores) {
		s := &syncStore{Store: w.stores[i%len(w.stores)]}
		group.Go(func() {
			for range 12 {
				if w.try(t, s, k) && chance(50) {
					return
				}
			}
		})
	}
	group.Wait()
}

// try makes one attempt, and reports whether the request is answered.
func (w *world) try(t *testing.T, s *syncStore, k *history) (answered bool) {
	t.Helper()
	a := k.begin(fmt.Sprintf("%s:%d", s.process, w.minted.Add(1)))
	r := k.request(a)
	r.Join = chance(70)
	for range 8 {
		asked, done := time.Now(), k.answer()
		got, err := s.Enqueue(t.Context(), r)
		switch {
		case err != nil:
			k.begins(a)
			if chance(70) {
				continue
			}
			w.abort(t, s, k, a, r)
			return false
		case got.Verdict == store.Done || got.Verdict == store.Sealed:
			w.replays.Add(1)
			w.over(k, a)
			k.answered(t, cmp.Or(string(got.Record), theSeal))
			return true
		case got.Verdict == store.Interrupted:
			w.interrupted.Add(1)
			w.over(k, a)
			k.blames(a, asked)
			if chance(20) {
				if running, err := s.Resolve(t.Context(), r); err == nil && !running {
					w.resolved.Add(1)
				}
			}
			return false
		case got.Verdict != store.Undecided:
			t.Errorf("%s: verdict %v", k.name, got.Verdict)
			return false
		case got.Granted:
			k.begins(a)
			if done != "" {
				t.Errorf("%s: granted after it was answered with %q", k.name, done)
			}
			if got.Number > 1 {
				w.reruns.Add(1)
				k.blames(a, a.asked)
			}
			w.run(t, s, k, a, r, got.Since)
			return false
		}
		w.busy.Add(1)
		time.Sleep(time.Millisecond) // its turn may come
	}
	w.abort(t, s, k, a, r)
	return false
}

// run runs the attempt, as long as its lease is valid or longer, and ends it.
func (w *world) run(t *testing.T, s *syncStore, k *history, a *made, r storetest.AnyRequest, since time.Time) {
	t.Helper()
	if !k.enter(t, a, since.Add(shortTTL)) { // over on arrival
		w.abort(t, s, k, a, r)
		return
	}
	w.runs.Add(1)
	if chance(15) {
		drop.Run(t.Context(), w.direct, []string{"{p:" + k.name + "}:r"}, a.token)
	}
	switch lot := rand.IntN(100); {
	case lot < 13:
		w.deaths.Add(1)
		k.leave(a)
		return
	case lot < 26:
		time.Sleep(shortTTL + margin)
	default:
		time.Sleep(rand.N(10 * time.Millisecond))
	}
	k.leave(a)
	switch lot := rand.IntN(100); {
	case lot < 30:
		w.abort(t, s, k, a, r)
		return
	case lot < 35: // nobody knows whether it was done
		k.leaves(a)
		r.Attempt = nil
		_, _ = s.Release(t.Context(), r)
		return
	case lot < 40:
		r.Ending = store.Seal
	default:
		r.Ending, r.Record = store.Commit, []byte("answer of "+a.token)
	}
	for range 4 {
		beside := k.runner()
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
		k.over(a)
		k.answered(t, cmp.Or(string(r.Record), theSeal))
		if beside != nil && k.runner() == beside {
			t.Errorf("%s: the answer of %s was stored while %s ran", k.name, a.token, beside.token)
		}
		return
	}
}

// abort aborts an attempt.
func (w *world) abort(t *testing.T, s *syncStore, k *history, a *made, r storetest.AnyRequest) {
	t.Helper()
	r.Ending = store.Abort
	for range 4 {
		released, err := s.Release(t.Context(), r)
		if err != nil {
			continue
		}
		if !k.buried(a, released.Record) {
			w.over(k, a)
		}
		return
	}
}

// over notes that the attempt is over, unless a begin of it may still come, after
// the mark of its abort has given way to that of another.
func (w *world) over(k *history, a *made) {
	if _, strayed := w.strayed.Load(a.token); !strayed {
		k.over(a)
	}
}

// drop makes the server lose the record of an attempt that runs.
var drop = redis.NewScript(`if redis.call('HGET', KEYS[1], 't') == ARGV[1] then redis.call('DEL', KEYS[1]) end return 0`)
