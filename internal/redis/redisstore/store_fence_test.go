package redisstore

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A block is the fencing numbers that one command has reserved: count numbers from first on.
type block struct{ first, count int64 }

// end returns the last number of the block.
func (b block) end() int64 { return b.first + b.count - 1 }

// reserve reserves numbers: with Enqueue if the turn is even, otherwise with Renew.
func reserve(t *testing.T, s *syncStore, turn, wanted int) block {
	t.Helper()
	r := storetest.Request(storetest.Me1)
	r.Fences = wanted
	if turn%2 == 0 {
		got, err := s.Enqueue(t.Context(), r)
		if err != nil || !got.Granted {
			t.Fatalf("%+v, %v", got, err)
		}
		return block{got.Fence, int64(got.Fences)}
	}
	got, err := s.Renew(t.Context(), r)
	if err != nil || !got.Held {
		t.Fatalf("%+v, %v", got, err)
	}
	return block{got.Fence, int64(got.Fences)}
}

func TestFences(t *testing.T) {
	t.Parallel()
	storetest.OnEachServer(t, func(t *testing.T, rdb redis.UniversalClient) {
		t.Run("numbers rise", func(t *testing.T) { fencesRise(t, rdb) })
		t.Run("numbers rise at full speed", func(t *testing.T) { fencesRiseAtFullSpeed(t, rdb) })
		t.Run("numbers are exact", func(t *testing.T) { fencesAreExact(t, rdb) })
		t.Run("numbers are reserved only for the holder", func(t *testing.T) { fencesAreReservedForTheHolderAlone(t, rdb) })
	})
}

// flushAll deletes all data.
func flushAll(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	err := redistest.EachMaster(t.Context(), rdb, func(master redis.Cmdable) error {
		return master.FlushAll(t.Context()).Err()
	})
	if err != nil {
		t.Fatal(err)
	}
}

func fencesRise(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	storetest.State{}.Put(t, rdb)
	s := newStore(t, rdb)
	const wanted = 64
	var last block
	for i := range 20 {
		lost, ahead := i == 6 || i == 10, i >= 14
		switch i {
		case 6:
			rdb.Del(t.Context(), storetest.FenceName)
		case 10:
			flushAll(t, rdb)
		case 14: // the counter is ahead of the clock, as after the clock was set back
			last.first += int64(time.Hour / time.Microsecond)
			rdb.Set(t.Context(), storetest.FenceName, last.end(), 0)
		}
		got := reserve(t, s, i, wanted)
		if got.first <= last.end() {
			t.Fatalf("block %d begins at %d, the block before it ended at %d", i, got.first, last.end())
		}
		if got.count < 1 || got.count > wanted || (lost || ahead) && got.count != 1 {
			t.Errorf("block %d has %d numbers", i, got.count)
		}
		if ahead && got.first != last.end()+1 {
			t.Errorf("block %d begins at %d, ahead of the clock, and the block before it ended at %d", i, got.first, last.end())
		}
		last = got
		if kept := rdb.Get(t.Context(), storetest.FenceName).Val(); kept != strconv.FormatInt(last.end(), 10) {
			t.Fatalf("the server keeps %q as the last number, want %d", kept, last.end())
		}
		if ttl := rdb.PTTL(t.Context(), storetest.FenceName).Val(); !storetest.IsTTL(ttl, 7*24*time.Hour) {
			t.Errorf("the TTL of the counter is %v", ttl)
		}
	}
}

// Blocks are reserved faster than the server's clock counts as many microseconds. The counter is
// deleted at random.
func fencesRiseAtFullSpeed(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	storetest.State{}.Put(t, rdb)
	s := newStore(t, rdb)
	const wanted = 1000
	var last block
	for i := range suite.Size(150, 1000) {
		lost := i == 0 || rand.N(10) == 0
		if lost {
			rdb.Del(t.Context(), storetest.FenceName)
		}
		got := reserve(t, s, i, wanted)
		if got.first <= last.end() {
			t.Fatalf("block %d begins at %d, the block before it ended at %d", i, got.first, last.end())
		}
		if !lost && got.count < wanted && got.first != last.end()+1 {
			t.Fatalf("block %d has %d numbers, although the clock allows %d", i, got.count, got.end()-last.end())
		}
		last = got
	}
}

func TestFencesRiseAfterRestart(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rdb := server.Client(t)
	before := reserve(t, newStore(t, rdb), 0, 1)
	server.Restart()
	if after := reserve(t, newStore(t, server.Client(t)), 0, 1); after.first <= before.end() {
		t.Errorf("%d after %d", after.first, before.end())
	}
}

// The numbers are exact up to the greatest number of a counter.
func fencesAreExact(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	storetest.State{}.Put(t, rdb)
	s := newStore(t, rdb)
	const last = 8999999999999999
	rdb.Set(t.Context(), storetest.FenceName, last, 0)
	if got := reserve(t, s, 0, 3); got != (block{last + 1, 1}) {
		t.Errorf("%+v after %d", got, last)
	}
	if kept := rdb.Get(t.Context(), storetest.FenceName).Val(); kept != "9000000000000000" {
		t.Errorf("kept %q", kept)
	}
}

func fencesAreReservedForTheHolderAlone(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	s := newStore(t, rdb)
	storetest.State{Value: storetest.Bob1, TTL: storetest.TTL}.Put(t, rdb)
	r := storetest.Request(storetest.Me1)
	r.Fences = 8
	if got, err := s.Enqueue(t.Context(), r); err != nil || got.Granted || got.Fence != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := s.Renew(t.Context(), r); err != nil || got.Held || got.Fence != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if rdb.Exists(t.Context(), storetest.FenceName).Val() != 0 {
		t.Error("numbers were reserved")
	}
}
