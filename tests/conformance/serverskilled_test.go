package conformance

import (
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// All servers are killed before a request and restarted after its answer. This is a row of
// the table that needs servers of its own.
func TestAllServersAreKilled(t *testing.T) {
	t.Parallel()
	for _, kind := range redistest.Kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			kind.SkipRepeats(t)
			t.Parallel()
			servers := kind.Start(t)
			var clients []*routeClient
			for _, f := range frameworks() {
				clients = append(clients, newEnvironment(t, f, servers).serve(route{locks: []lock{{keys: []key{byHeader}}}}))
			}
			servers.Kill()
			defer servers.Restart()
			for _, s := range clients {
				t.Run(s.f.name, func(t *testing.T) {
					own := *s.environment
					own.T = t
					s := &routeClient{&own, s.server}
					s.wantRefusal(plain, s.rowOf(refused(core.ErrUnavailable, time.Second)))
				})
			}
		})
	}
}
