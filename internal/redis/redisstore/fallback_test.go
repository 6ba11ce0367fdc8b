package redisstore

import (
	"testing"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/pipeline"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// Only SET with a syntax error shows that the server is old. Any other error decides.
func TestOtherErrorsHaveNoFallback(t *testing.T) {
	t.Parallel()
	s := newStore(t, redistest.Reuse(t).Client(t)).Store
	for _, test := range []struct {
		name, err string
		fallback  bool
	}{
		{"set", "ERR syntax error", true},
		{"set", "OOM command not allowed", false},
		{"evalsha", "ERR syntax error", false},
	} {
		x := &operation{store: s}
		x.target = storetest.Request(storetest.Me1).Target()
		x.encodeTake()
		sent := command.New(1, []any{test.name, "p:k"})
		s.oldServer.Store(false)
		fallback := x.Fallback(sent, pipeline.Reply{Err: storetest.ServerError(test.err)}, 1)
		if (fallback != nil) != test.fallback || s.oldServer.Load() != test.fallback {
			t.Errorf("%s, %s: fallback %v, old server %v", test.name, test.err, fallback, s.oldServer.Load())
		}
	}
}
