package crash

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	stored "github.com/reqlock/reqlock/internal/answer"
	"github.com/reqlock/reqlock/tests/internal/clock"
	"github.com/reqlock/reqlock/tests/internal/history"
)

// op returns the answer as a call of Begin. Answers that are equal for a client have one Record.
func (a answer) op() history.Op {
	outcome := history.Failed
	switch {
	case a.Replayed:
		outcome = history.Replayed
	case a.Fine:
		outcome = history.Granted
	case a.Code == "outcome_unknown":
		outcome = history.Interrupted
	}
	return history.Op{Process: a.Process, Kind: history.Begin, Outcome: outcome, Record: a.record()}
}

func (a answer) record() string { return fmt.Sprintf("%d %s %s", a.Status, a.Location, a.Body) }

func (a answer) same(b answer) bool { return a.record() == b.record() }

func decodeHTTP(text string) (answer, error) {
	kept, err := stored.Decode([]byte(text))
	return answer{Status: kept.Status, Location: kept.Header.Get("Location"), Body: string(kept.Body)}, err
}

func (s *testbed) observe(q request, answers []answer, asked ...*process) *history.Request {
	s.monitor.sync(s.t)
	key := s.framework.endpoint(q.policy, q.key)
	seen := &history.Request{
		Writes: s.monitor.of(s.lock(q)), Effects: s.ledger.of(q.key), Reruns: q.policy == rerun, Uncommitted: map[int]bool{},
	}
	for i, w := range seen.Writes {
		if w.Kind == history.Commit {
			committed, err := s.framework.committed(w.Record)
			if err != nil {
				s.t.Errorf("%+v: the committed bytes are no answer: %v", q, err)
			}
			seen.Writes[i].Record = committed.record()
		}
	}
	for _, a := range answers {
		seen.Answers = append(seen.Answers, a.op())
	}
	for _, p := range asked {
		seen.Uncommitted[p.number] = p.events(refused, key)+p.events(unstored, key) > 0
	}
	return seen
}

func (s *testbed) wantNoViolations(q request, seen *history.Request) {
	s.t.Helper()
	for _, violation := range seen.Violations() {
		s.t.Errorf("%+v: %s", q, violation)
	}
}

func isCommitted(writes []history.Op) bool {
	return len(writes) > 0 && writes[len(writes)-1].Kind == history.Commit
}

// A ledgerCall is a call of the ledger by a handler.
type ledgerCall struct {
	Charge  bool   // the effect; otherwise the handler has only started
	Process int    // of the handler
	Key     string // of the request
	Number  int    // of the attempt
	Token   string // of its lease, unique for each attempt
}

// A ledger counts the effects of a service. It is safe for concurrent use.
type ledger struct {
	server *httptest.Server

	mu      sync.Mutex
	effects map[string][]history.Effect
	hooks   map[string]func(ledgerCall) (proceed bool)
	always  func(ledgerCall) (proceed bool)
	serial  int
}

// newLedger serves a ledger until the end of the test.
func newLedger(t *testing.T) *ledger {
	l := &ledger{effects: map[string][]history.Effect{}, hooks: map[string]func(ledgerCall) bool{}}
	l.server = httptest.NewServer(l)
	t.Cleanup(l.server.Close)
	return l
}

// hook runs f in each call for the key, after the effect and before the answer. If f
// returns false the ledger answers 503.
func (l *ledger) hook(key string, f func(ledgerCall) (proceed bool)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hooks[key] = f
}

// ServeHTTP answers a call with the id of its effect.
func (l *ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var v ledgerCall
	if err := json.NewDecoder(r.Body).Decode(&v); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	id, hook := l.add(v)
	if hook != nil && !hook(v) {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	_, _ = fmt.Fprint(w, id)
}

func (l *ledger) add(v ledgerCall) (id string, hook func(ledgerCall) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v.Charge {
		l.serial++
		id = fmt.Sprintf("charge-%d", l.serial)
		l.effects[v.Key] = append(l.effects[v.Key], history.Effect{
			At: clock.Now(), Process: v.Process, ID: id, Key: v.Key, Number: v.Number, Lease: v.Token,
		})
	}
	if hook, found := l.hooks[v.Key]; found {
		return id, hook
	}
	return id, l.always
}

func (l *ledger) of(key string) []history.Effect {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.effects[key])
}
