package redisserver

import (
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

func TestServerCountsWhatItDoes(t *testing.T) {
	redistest.Program(t)
	s, err := Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before, err := s.Used(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := s.Client.Set(t.Context(), "k", "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	after, err := s.Used(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	since := after.Since(before)
	if len(since.Calls) != 1 || since.Calls["set"] != 3 || since.Keys != 1 || after.CPU <= 0 {
		t.Errorf("three SET are %+v", since)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.process.Done():
	default:
		t.Error("the server still runs")
	}
}

// The memory of keys does not include connections of a client that is about to disconnect.
func TestWeighIsWithoutConnections(t *testing.T) {
	redistest.Program(t)
	s, err := Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	const keys, value = 1000, 1000
	other := redis.NewClient(&redis.Options{Addr: s.Addr})
	for i := range keys {
		if err := other.Set(t.Context(), strconv.Itoa(i), strings.Repeat("v", value), time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
	}
	var leaves atomic.Bool
	left := make(chan error, 1)
	time.AfterFunc(20*leavePoll, func() {
		leaves.Store(true)
		left <- other.Close()
	})
	bytes, count, err := s.MeasureMemory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !leaves.Load() {
		t.Error("weighed while another client was connected")
	}
	if err := <-left; err != nil {
		t.Fatal(err)
	}
	if each := bytes / keys; count != keys || each < value || each > value+value/2 {
		t.Errorf("%d keys with %d bytes take %d each, and are %d", keys, value, each, count)
	}
	if used, err := s.Used(t.Context()); err != nil || used.Keys != 0 {
		t.Errorf("%d keys are left: %v", used.Keys, err)
	}
}

func TestParseInfo(t *testing.T) {
	info := parseInfo("# CPU\r\nused_cpu_user:1.5\r\ndb0:keys=7,expires=2\r\ncmdstat_set:calls=3,usec=4\r\n")
	if got := secondsOf(info["used_cpu_user"]); got != 1500*time.Millisecond {
		t.Errorf("used_cpu_user is %v", got)
	}
	if got := field(info["db0"], "keys"); got != 7 {
		t.Errorf("%d keys", got)
	}
	if got := field(info["cmdstat_set"], "calls"); got != 3 {
		t.Errorf("%d calls", got)
	}
	if got := field(info["db1"], "keys"); got != 0 {
		t.Errorf("%d keys in a database that is not there", got)
	}
}
