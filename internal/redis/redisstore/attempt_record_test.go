package redisstore

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// bigRecord returns an answer of 1 MiB of random bytes.
func bigRecord() []byte {
	record, random := make([]byte, 1<<20), rand.NewChaCha8([32]byte{})
	_, _ = random.Read(record)
	return record
}

// putRecord commits a record for the key.
func putRecord(t *testing.T, s *syncStore, r storetest.AnyRequest, record []byte) {
	t.Helper()
	if got, err := s.Enqueue(t.Context(), r); err != nil || !got.Granted {
		t.Fatalf("%+v, %v", got, err)
	}
	r.Ending, r.Record = store.EndCommit, record
	if got, err := s.Release(t.Context(), r); err != nil || got.Record != store.WasStored {
		t.Fatalf("%+v, %v", got, err)
	}
}

func TestBigRecordIsReturnedUnchanged(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	s := newStore(t, rdb)
	record := bigRecord()
	sent := bytes.Clone(record)
	putRecord(t, s, storetest.AttemptRequest(storetest.Me1), sent)
	if !bytes.Equal(sent, record) {
		t.Error("the record of the caller has changed")
	}
	for i := range 3 {
		got, err := s.Enqueue(t.Context(), storetest.AttemptRequest(storetest.Me2))
		if err != nil || got.Verdict != store.Done || !bytes.Equal(got.Record, record) {
			t.Fatalf("%d: verdict %v of %d bytes, %v", i, got.Verdict, len(got.Record), err)
		}
	}
}

func TestSentRecordIsNotCopied(t *testing.T) {
	t.Parallel()
	record := bigRecord()
	if sent, err := new(arg).setBytes(record).MarshalBinary(); err != nil || &sent[0] != &record[0] {
		t.Errorf("%v", err)
	}
}

// A pooled operation must not keep the memory of its last record.
func TestPooledOperationKeepsNoRecord(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	isClear := func(x *operation) bool {
		return x.details == (details{}) &&
			x.fingerprint.buffer == nil && x.result.buffer == nil
	}
	acquires, releases := 0, 0
	suite.Eventually(t, "both pools return an operation", func() bool { // a sync.Pool may lose its items
		storetest.State{}.Put(t, rdb)
		s := newStore(t, rdb)
		putRecord(t, s, storetest.AttemptRequest(storetest.Me1), bigRecord())
		if got, err := s.Enqueue(t.Context(), storetest.AttemptRequest(storetest.Me2)); err != nil || len(got.Record) == 0 {
			t.Fatalf("%+v, %v", got.Verdict, err)
		}
		if err := s.Close(t.Context()); err != nil { // no command is in flight
			t.Fatal(err)
		}
		if begun, ok := s.acquires.free.Get().(*acquireOp); ok {
			acquires++
			if !isClear(&begun.operation) || begun.done != nil {
				t.Errorf("after begin: %+v", begun.details)
			}
		}
		if finished, ok := s.releases.free.Get().(*releaseOp); ok {
			releases++
			if !isClear(&finished.operation) || finished.done != nil {
				t.Errorf("after finish: %+v", finished.details)
			}
		}
		return acquires > 0 && releases > 0
	})
}

// Records in flight do not delay requests without a record. Begins and commits do not delay each
// other.
func TestRecordsInFlightDelayNoOtherRequests(t *testing.T) {
	t.Parallel()
	s, proxy, direct := behindProxy(t, storetest.LongReads) // on a busy machine too, nothing is sent again while it is held
	releaseBegin, begins := proxy.HoldCommand(onLock("p:begins"))
	releaseFinish, finishes := proxy.HoldCommand(onLock("p:finishes"))
	t.Cleanup(releaseBegin) // also when the test has failed
	t.Cleanup(releaseFinish)
	of := func(key, token string) storetest.AnyRequest {
		r := storetest.AttemptRequest(token)
		r.Key, r.Bound = key, storetest.LongBound
		return r
	}
	over := make(chan error, 2)
	s.Store.Enqueue(of("begins", storetest.Me1).Enqueue(), func(_ store.Answer, err error) { over <- err })
	suite.AwaitClosed(t, "the begin is held", begins)
	commits := of("free", storetest.Me1)
	commits.Ending, commits.Record = store.EndCommit, []byte(storetest.Record)
	if got, err := s.Release(t.Context(), commits); err != nil || got.Record != store.Restored {
		t.Errorf("commit while another begins: %+v, %v", got, err)
	}
	s.Store.Release(of("finishes", storetest.Me1).Release(), func(_ store.ReleaseResult, err error) { over <- err })
	suite.AwaitClosed(t, "the abort is held", finishes)

	if got := take.run(t, s); !got.granted {
		t.Errorf("take: %+v", got)
	}
	if got := enqueue.run(t, s); !got.granted {
		t.Errorf("enqueue: %+v", got)
	}
	if got := renew.run(t, s); !got.granted {
		t.Errorf("renew: %+v", got)
	}
	if got := resolve.run(t, s); got.resolved != store.NoRecord {
		t.Errorf("resolve: %+v", got)
	}
	if got := release.run(t, s); got.status != store.Freed {
		t.Errorf("release: %+v", got)
	}
	storetest.State{}.Check(t, direct)
	select {
	case err := <-over:
		t.Fatalf("a held command has ended: %v", err)
	default:
	}
	releaseBegin()
	releaseFinish()
	for range 2 {
		if err := suite.Receive(t, "each held command is answered", over); err != nil {
			t.Error(err)
		}
	}
}

// onLock matches the scripts on this lock.
func onLock(lock string) func(command []string) bool {
	return func(command []string) bool { return len(command) > 3 && command[3] == lock }
}
