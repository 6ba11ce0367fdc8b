package idempotent

import (
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/bench/internal/redisserver"
)

func TestMain(m *testing.M) { suite.Main(m, suite.Fasthttp()...) }

// Without its middleware, a service replays nothing and stores nothing: a run must be an error.
func TestABrokenCaseGivesNoFigure(t *testing.T) {
	redis := redisserver.Start(t)
	for _, framework := range []string{onNetHTTP, onGin, onFiber} {
		for which, want := range map[string]string{replay: "the replay is", first: "the answer was not kept"} {
			t.Run(framework+" "+which, func(t *testing.T) {
				r := &Requests{Framework: framework, Case: plain, Clients: 2, Size: smallAnswer, Addr: redis.Addrs[0], Window: time.Millisecond}
				if err := r.Prepare(t.Context()); err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := r.Close(); err != nil {
						t.Error(err)
					}
				}()
				r.Case = which
				if _, err := r.Run(t.Context(), time.Now()); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("without the middleware: %v", err)
				}
			})
		}
	}
}
