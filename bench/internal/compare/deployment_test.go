package compare

import (
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/reqlock/reqlock/bench/internal/lab"
	"github.com/reqlock/reqlock/bench/internal/load"
	"github.com/reqlock/reqlock/bench/internal/redisserver"
	"github.com/reqlock/reqlock/internal/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestOnlyASuiteOfAClusterStartsOne also ends it.
func TestOnlyASuiteOfAClusterStartsOne(t *testing.T) {
	redistest.Program(t)
	l := &lab.Lab{Server: &redisserver.Server{Addr: "127.0.0.1:1"}} // nobody asks it anything
	for _, s := range Suites() {
		want := 1
		if s.Name == Cluster {
			want = 3
		}
		on, end, err := s.deploy(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(on.Addrs()); got != want || (on == deployment(l.Server)) != (want == 1) {
			t.Errorf("%s runs on %d nodes, want %d", s.Name, got, want)
		}
		for _, job := range s.jobs(l, on, s.Locks[0], "") {
			if loop, ok := job.(*load.Loop); ok && !slices.Equal(loop.Addrs, on.Addrs()) {
				t.Errorf("%s: a child is told %v, want %v", s.Name, loop.Addrs, on.Addrs())
			}
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	}
}
