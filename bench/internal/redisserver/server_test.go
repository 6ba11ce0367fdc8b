package redisserver

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/reqlock/reqlock/internal/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
	case <-s.process.done:
	default:
		t.Error("the server still runs")
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
