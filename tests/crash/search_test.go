package crash

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A process is killed in the middle of payments, and no client tries again. A search reports each of
// them, and a process that starts later reports none again.
func TestASearchFindsThePaymentsOfAKilledProcess(t *testing.T) {
	t.Parallel()
	s := newTestbed(t, "net/http")
	s.server.Grant(redistest.SearchRights...)
	victim := s.start(t, nil)
	var want []string
	var charged atomic.Int32
	var clients sync.WaitGroup
	for i := range 5 {
		q := request{policy: reject, key: fmt.Sprintf("killed-%d", i)}
		want = append(want, s.framework.endpoint(q.policy, q.key))
		s.ledger.hook(q.key, func(call ledgerCall) bool {
			if call.Charge {
				if charged.Add(1) == 5 {
					victim.Kill()
				}
				<-victim.Done()
			}
			return true
		})
		clients.Go(func() { _, _ = s.ask(victim, q) })
	}
	clients.Wait()
	slices.Sort(want)
	for _, want := range [][]string{want, nil} {
		var mu sync.Mutex
		var found []string
		open := 0
		locks := core.Must(core.New(s.server.Client(t), core.WithUnknownSearch(1500*time.Millisecond), core.WithObserver(func(e core.Event) {
			mu.Lock()
			defer mu.Unlock()
			switch e.Kind {
			case core.Searched:
				open = max(open, e.Open)
			case core.OutcomeUnknown:
				key, _ := e.Key.EndpointKey()
				found = append(found, key)
				if e.Age < time.Second || e.Age > time.Minute { // the search before was 1.5 s earlier, and a server counts whole seconds
					t.Errorf("reported %v after the last command", e.Age)
				}
			}
		})))
		suite.Eventually(t, "a search has found all payments", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return open == 5
		})
		if err := locks.Close(t.Context()); err != nil {
			t.Error(err)
		}
		slices.Sort(found)
		if !slices.Equal(found, want) {
			t.Errorf("reported %q, want %q", found, want)
		}
	}
}
