package registry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/keyspace"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A beating is a Beater with short times, and what it has done.
type beating struct {
	*Beater
	beats   atomic.Int32
	refused atomic.Int32
}

// newBeating returns a beating on servers, under a prefix.
func newBeating(t *testing.T, prefix string, servers ...redis.UniversalClient) *beating {
	t.Helper()
	b := &beating{}
	b.Beater = New(Config{
		Servers: servers, Prefix: prefix, ID: storetest.Me, Bound: 2 * time.Second,
		Record: func() Process {
			p := sample()
			p.Waiting = int(b.beats.Add(1))
			return p
		},
		Refused: func(error) { b.refused.Add(1) },
	})
	b.ttl, b.interval = 2*time.Second, 200*time.Millisecond
	t.Cleanup(b.Stop)
	return b
}

// read returns the record, and whether there is one. It fails the test if that cannot be read.
func read(t *testing.T, rdb redis.UniversalClient, prefix string) (Process, bool) {
	t.Helper()
	p, found, err := Read(t.Context(), rdb, prefix, storetest.Me)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	return p, found
}

// On each kind of Redis and with the minimal rights, the record has a TTL, stays as long as the beats go
// on, and is gone after Stop.
func TestRecordLivesAsLongAsItsBeats(t *testing.T) {
	t.Parallel()
	for _, kind := range redistest.Kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			kind.SkipSentinels(t)
			servers, prefix := redistest.Shared(t, kind), redistest.OwnPrefix()
			servers.Grant(redistest.InstanceRights...)
			rdb := servers.Client(t)
			b := newBeating(t, prefix, rdb)
			if _, found := read(t, rdb, prefix); found {
				t.Error("there is a record before Begin")
			}
			b.Begin()
			b.Begin()
			suite.Eventually(t, "the record outlives its TTL", func() bool { return b.beats.Load() > 8 })
			p, found := read(t, rdb, prefix)
			if !found || p.Waiting < 6 || p.Service != "payments" || len(p.Holds) != 2 || p.Age < 0 || p.Age > b.ttl {
				t.Errorf("%+v, %v", p, found)
			}
			if ttl := rdb.PTTL(t.Context(), b.name).Val(); ttl <= 0 || ttl > b.ttl {
				t.Errorf("the TTL is %v", ttl)
			}
			b.Stop()
			if _, found := read(t, rdb, prefix); found {
				t.Error("there is a record after Stop")
			}
			last := b.beats.Load()
			b.Begin()
			b.Stop()
			if b.beats.Load() != last || b.refused.Load() != 0 {
				t.Errorf("%d beats after Stop, %d refused", b.beats.Load()-last, b.refused.Load())
			}
		})
	}
}

// A downHook fails each command as a server that is down, and notes when it was sent.
type downHook struct {
	redis.Hook
	sent []string
}

// DialHook is never called.
func (h *downHook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook is never called.
func (h *downHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook notes the commands.
func (h *downHook) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	begun := time.Now()
	return func(_ context.Context, commands []redis.Cmder) error {
		for _, one := range commands {
			h.sent = append(h.sent, fmt.Sprint(time.Since(begun), " ", one.Name()))
		}
		return &net.OpError{Op: "dial", Err: errors.New("down")}
	}
}

// A beat comes each 10 s, whether the last one has failed or not, and is one round trip.
func TestBeatsGoOnWhileRedisIsDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, down := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}), &downHook{} // a name would be looked up
		rdb.AddHook(down)
		b := newBeating(t, "reqlock:", rdb)
		b.ttl, b.interval = TTL, Interval
		b.Begin()
		time.Sleep(25 * time.Second)
		b.Stop()
		want := "[0s eval 10s eval 20s eval 25s del]"
		if got := fmt.Sprint(down.sent); got != want || b.refused.Load() != 0 {
			t.Errorf("sent %s, refused %d\nwant %s", got, b.refused.Load(), want)
		}
		_ = rdb.Close()
	})
}

// The record of a process that was killed, or whose server does not reply, ends by its TTL.
func TestRecordOfSilentProcessExpires(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Grant(redistest.InstanceRights...)
	proxy := redistest.NewProxy(t, server.Addr())
	rdb := server.Client(t)
	b := newBeating(t, "reqlock:", proxy.Client(t))
	b.Bound = 500 * time.Millisecond
	b.Begin()
	suite.Eventually(t, "there is a record", func() bool { _, found := read(t, rdb, "reqlock:"); return found })
	proxy.Partition()
	suite.Eventually(t, "the record has expired", func() bool { _, found := read(t, rdb, "reqlock:"); return !found })
	begun := time.Now()
	b.Stop()
	if took := time.Since(begun); took > 5*time.Second || b.refused.Load() != 0 {
		t.Errorf("Stop took %v, %d refused", took, b.refused.Load())
	}
}

// A server that refuses the record is reported once, and another server of a quorum has the record.
func TestRefusedRecordIsReportedOnce(t *testing.T) {
	t.Parallel()
	servers := []*redistest.Server{redistest.Start(t), redistest.Start(t)}
	for _, server := range servers {
		server.Grant(redistest.InstanceRights...)
	}
	first, second := servers[0].Client(t), servers[1].Client(t)
	name := keyspace.New("reqlock:").Process(storetest.Me)
	if err := first.Set(t.Context(), name, "theirs", 0).Err(); err != nil {
		t.Fatal(err)
	}
	b := newBeating(t, "reqlock:", first, second)
	b.Begin()
	suite.Eventually(t, "five beats", func() bool { return b.beats.Load() > 5 })
	if _, found := read(t, second, "reqlock:"); !found || b.refused.Load() != 1 {
		t.Errorf("found %v on the second server, refused %d times", found, b.refused.Load())
	}
	if _, _, err := Read(t.Context(), first, "reqlock:", storetest.Me); err == nil {
		t.Error("read a string")
	}
}

// Without a Beater nothing happens, and a Beater that has begun costs a lock no allocation.
func TestBeginCostsNothing(t *testing.T) {
	var none *Beater
	none.Stop()
	running := &Beater{}
	running.hasBegun.Store(true)
	for _, b := range []*Beater{none, running} {
		if n := testing.AllocsPerRun(100, b.Begin); n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}
