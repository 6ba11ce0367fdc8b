package redisstore

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// bigRecord returns an answer of 1 MiB, of all kinds of bytes.
func bigRecord() []byte {
	record, random := make([]byte, 1<<20), rand.NewChaCha8([32]byte{})
	_, _ = random.Read(record)
	return record
}

// putRecord commits a record for the key.
func putRecord(t *testing.T, s *syncStore, r store.Request, record []byte) {
	t.Helper()
	if got, err := s.Enqueue(t.Context(), r); err != nil || !got.Granted {
		t.Fatalf("%+v, %v", got, err)
	}
	r.Ending, r.Record = store.Commit, record
	if got, err := s.Release(t.Context(), r); err != nil || got.Stored != store.WasStored {
		t.Fatalf("%+v, %v", got, err)
	}
}

func TestABigRecordComesBackAsItWas(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	s := newStore(t, rdb)
	record := bigRecord()
	sent := bytes.Clone(record)
	putRecord(t, s, attempt(me1), sent)
	if !bytes.Equal(sent, record) {
		t.Error("the caller's record was written to")
	}
	for i := range 3 {
		got, err := s.Enqueue(t.Context(), attempt(me2))
		if err != nil || got.Verdict != store.Done || !bytes.Equal(got.Record, record) {
			t.Fatalf("%d: verdict %v of %d bytes, %v", i, got.Verdict, len(got.Record), err)
		}
	}
}

func TestARecordIsNotCopiedOnItsWayOut(t *testing.T) {
	record := bigRecord()
	if sent, err := new(text).lend(record).MarshalBinary(); err != nil || &sent[0] != &record[0] {
		t.Errorf("%v", err)
	}
}

// Commits that come together do not make one batch of all their answers, which
// would outlive its bound.
func TestABatchOfAnswersIsNotTooBig(t *testing.T) {
	s, proxy, _ := behindProxy(t)
	let, held := proxy.HoldCommand(onLock("p:first"))
	t.Cleanup(let)
	over := make(chan error, 10)
	commit := func(key string, record []byte) {
		r := attempt(me1)
		r.Key, r.Ending, r.Record = key, store.Commit, record
		s.Store.Release(r, func(_ store.Released, err error) { over <- err })
	}
	commit("first", nil)
	<-held
	for _, key := range []string{"a", "b", "c", "d", "e"} {
		commit(key, bigRecord()[:batchBytes/2])
	}
	l := &s.finishes
	l.mu.Lock()
	b := &batch{}
	l.fill(b)
	n, left := len(b.sends), len(l.queue)
	l.queue = append(b.sends, l.queue...) // back where they were
	l.mu.Unlock()
	if want := min(2, l.width); n != want || left != 5-want {
		t.Errorf("%d together, %d left", n, left)
	}
	let()
	for range 6 {
		if err := <-over; err != nil {
			t.Error(err)
		}
	}
}

// What waits for its next use holds nothing of the last one.
func TestAnExchangeLetsGoOfItsRecord(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	released := func(x *exchange) bool {
		return x.request.Attempt == nil && x.request.Record == nil && x.first.reply.value == nil && x.first.command == nil &&
			x.fingerprint.buffer == nil && x.result.buffer == nil
	}
	asks, releases := 0, 0
	for i := 0; asks == 0 || releases == 0; i++ { // a pool may always lose what it was given
		state{}.put(t, rdb)
		s := newStore(t, rdb)
		putRecord(t, s, attempt(me1), bigRecord())
		if got, err := s.Enqueue(t.Context(), attempt(me2)); err != nil || len(got.Record) == 0 {
			t.Fatalf("%+v, %v", got.Verdict, err)
		}
		if err := s.Close(t.Context()); err != nil { // the lanes are at rest
			t.Fatal(err)
		}
		if asked, ok := s.asks.free.Get().(*asking); ok {
			asks++
			if !released(&asked.exchange) || asked.done != nil {
				t.Errorf("after begin: %+v", asked.request)
			}
		}
		if finished, ok := s.releases.free.Get().(*releasing); ok {
			releases++
			if !released(&finished.exchange) || finished.done != nil {
				t.Errorf("after finish: %+v", finished.request)
			}
		}
		for _, l := range s.all() {
			if b := l.spare; b != nil && (len(b.sends)+len(b.cmds)+len(b.notices) > 0) {
				t.Errorf("a lane at rest holds %d sends", len(b.sends))
			}
		}
	}
}

// Records that are under way keep nobody waiting who wants a mere lock, and those
// that are read and those that are stored do not wait for each other.
func TestRecordsHoldNothingElseUp(t *testing.T) {
	s, proxy, direct := behindProxy(t)
	letBegin, begins := proxy.HoldCommand(onLock("p:begins"))
	letFinish, finishes := proxy.HoldCommand(onLock("p:finishes"))
	t.Cleanup(letBegin) // also when the test has failed
	t.Cleanup(letFinish)
	of := func(key, token string) store.Request {
		r := attempt(token)
		r.Key = key
		return r
	}
	over := make(chan error, 2)
	s.Store.Enqueue(of("begins", me1), func(_ store.Answer, err error) { over <- err })
	<-begins
	commits := of("free", me1)
	commits.Ending, commits.Record = store.Commit, []byte(theAnswer)
	if got, err := s.Release(t.Context(), commits); err != nil || got.Stored != store.Restored {
		t.Errorf("commit while another begins: %+v, %v", got, err)
	}
	s.Store.Release(of("finishes", me1), func(_ store.Released, err error) { over <- err })
	<-finishes

	if got := take(t, s); !got.granted {
		t.Errorf("take: %+v", got)
	}
	if got := enqueue(t, s); !got.granted {
		t.Errorf("enqueue: %+v", got)
	}
	if got := renew(t, s); !got.granted {
		t.Errorf("renew: %+v", got)
	}
	if got := resolve(t, s); got.running {
		t.Errorf("resolve: %+v", got)
	}
	if got := release(t, s); got.end != store.Freed {
		t.Errorf("release: %+v", got)
	}
	state{}.check(t, direct)
	select {
	case err := <-over:
		t.Fatalf("what was held back is over: %v", err)
	default:
	}
	letBegin()
	letFinish()
	for range 2 {
		if err := <-over; err != nil {
			t.Error(err)
		}
	}
}

// onLock matches the scripts that run on this lock.
func onLock(lock string) func(command []string) bool {
	return func(command []string) bool { return len(command) > 3 && command[3] == lock }
}
