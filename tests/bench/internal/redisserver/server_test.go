package redisserver

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// A deployment is any of the types of this package.
type deployment interface {
	Used(ctx context.Context) (Usage, error)
}

// used returns the usage of servers.
func used(t *testing.T, servers deployment) Usage {
	t.Helper()
	usage, err := servers.Used(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return usage
}

func TestServerCountsCommands(t *testing.T) {
	t.Parallel()
	s := Start(t)
	before := used(t, s)
	for range 3 {
		if err := s.Client.Set(t.Context(), "k", "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	after := used(t, s)
	since := after.Since(before)
	if len(since.Calls) != 1 || since.Calls["set"] != 3 || since.Keys != 1 || after.CPU <= 0 {
		t.Errorf("three SET are %+v", since)
	}
}

// The memory of keys does not include connections of a client that is about to disconnect.
func TestMemoryDoesNotIncludeConnections(t *testing.T) {
	t.Parallel()
	s := Start(t)
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
		t.Error("measured while another client was connected")
	}
	if err := <-left; err != nil {
		t.Fatal(err)
	}
	if each := bytes / keys; count != keys || each < value || each > value+value/2 {
		t.Errorf("%d keys with %d bytes take %d each, and are %d", keys, value, each, count)
	}
	if left := used(t, s).Keys; left != 0 {
		t.Errorf("%d keys are left", left)
	}
}

func TestFieldsOfValues(t *testing.T) {
	for _, c := range []struct {
		value, name string
		want        int64
	}{
		{"keys=7,expires=2", "keys", 7},
		{"calls=3,usec=4", "usec", 4},
		{"calls=3,usec=4", "keys", 0},
		{"", "keys", 0},
	} {
		if got := field(c.value, c.name); got != c.want {
			t.Errorf("%s of %q is %d, want %d", c.name, c.value, got, c.want)
		}
	}
	if got := secondsOf("1.5"); got != 1500*time.Millisecond {
		t.Errorf("1.5 seconds are %v", got)
	}
}
