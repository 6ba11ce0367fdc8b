package conformance

import (
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// All servers die, and are back only when the answers were given. It is one row
// more of the table, but of servers that all frameworks share.
//
//faults:row 42
func TestAllServersAreKilled(t *testing.T) {
	t.Parallel()
	for _, kind := range redistest.Kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			servers := kind.Start(t)
			var sites []*site
			for _, f := range frameworks() {
				sites = append(sites, newEnv(t, f, servers).serve(route{locks: []lock{{keys: []key{byHeader}}}}))
			}
			servers.Kill()
			defer servers.Restart()
			for _, s := range sites {
				t.Run(s.f.name, func(t *testing.T) {
					here := *s.env
					here.T = t
					s := &site{&here, s.server}
					s.wantRefusal(plain, s.rowOf(refused(core.ErrUnavailable, time.Second)))
				})
			}
		})
	}
}
