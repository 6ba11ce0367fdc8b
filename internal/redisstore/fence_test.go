package redisstore

import (
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redistest"
)

// fences reserves a block with Enqueue or Renew, by turns.
func fences(t *testing.T, s *syncStore, turn, block int) int64 {
	t.Helper()
	r := request(me1)
	r.Fences = block
	if turn%2 == 0 {
		got, err := s.Enqueue(t.Context(), r)
		if err != nil || !got.Granted {
			t.Fatalf("%+v, %v", got, err)
		}
		return got.Fence
	}
	got, err := s.Renew(t.Context(), r)
	if err != nil || !got.Held {
		t.Fatalf("%+v, %v", got, err)
	}
	return got.Fence
}

//faults:row 21
func TestFences(t *testing.T) {
	onEachServer(t, func(t *testing.T, rdb redis.UniversalClient) {
		t.Run("they rise", func(t *testing.T) { fencesRise(t, rdb) })
		t.Run("they are exact", func(t *testing.T) { fencesAreExact(t, rdb) })
		t.Run("they are reserved for the holder alone", func(t *testing.T) { fencesAreReservedForTheHolderAlone(t, rdb) })
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
	state{}.put(t, rdb)
	s := newStore(t, rdb)
	const block = 64
	end := int64(0) // of the last block
	for i := range 20 {
		switch i {
		case 6:
			rdb.Del(t.Context(), theFence)
		case 10:
			flushAll(t, rdb)
		case 14: // a counter that is ahead of the clock, as after a step back
			rdb.Set(t.Context(), theFence, end+int64(time.Hour/time.Microsecond), 0)
			end += int64(time.Hour / time.Microsecond)
		}
		first := fences(t, s, i, block)
		if first <= end {
			t.Fatalf("block %d begins at %d, the one before it ended at %d", i, first, end)
		}
		end = first + block - 1
		if kept := rdb.Get(t.Context(), theFence).Val(); kept != strconv.FormatInt(end, 10) {
			t.Fatalf("the server keeps %q as the last number, want %d", kept, end)
		}
		if life := rdb.PTTL(t.Context(), theFence).Val(); !isLife(life, 7*24*time.Hour) {
			t.Errorf("the numbers are kept for %v", life)
		}
	}
}

//faults:row 16, 21
func TestFencesRiseOverARestart(t *testing.T) {
	server := redistest.Start(t)
	rdb := server.Client(t)
	first := fences(t, newStore(t, rdb), 0, 1)
	server.Restart()
	if second := fences(t, newStore(t, server.Client(t)), 0, 1); second <= first {
		t.Errorf("%d after %d", second, first)
	}
}

// The numbers are exact up to the largest that a counter may hold.
func fencesAreExact(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	state{}.put(t, rdb)
	s := newStore(t, rdb)
	const last = 8999999999999999
	rdb.Set(t.Context(), theFence, last, 0)
	if got := fences(t, s, 0, 3); got != last+1 {
		t.Errorf("%d after %d", got, last)
	}
	if kept := rdb.Get(t.Context(), theFence).Val(); kept != "9000000000000002" {
		t.Errorf("kept %q", kept)
	}
}

func fencesAreReservedForTheHolderAlone(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	s := newStore(t, rdb)
	state{value: bob1, ttl: ttl}.put(t, rdb)
	r := request(me1)
	r.Fences = 8
	if got, err := s.Enqueue(t.Context(), r); err != nil || got.Granted || got.Fence != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := s.Renew(t.Context(), r); err != nil || got.Held || got.Fence != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if rdb.Exists(t.Context(), theFence).Val() != 0 {
		t.Error("numbers were reserved")
	}
}
