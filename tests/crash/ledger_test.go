package crash

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// A visit is a call of the ledger by a handler that runs.
type visit struct {
	Charge  bool   // the effect; else the handler has only come in
	Process int    // which runs the handler
	Key     string // of the request
	Number  int    // of the attempt
	Token   string // of its lease, which no other attempt has
}

// An effect is a charge.
type effect struct {
	visit
	id string
}

// A ledger counts the effects of a service. It is safe for concurrent use.
type ledger struct {
	server *httptest.Server

	mu      sync.Mutex
	effects map[string][]effect
	hooks   map[string]func(visit) (goOn bool)
	always  func(visit) (goOn bool)
	serial  int
}

// newLedger opens a ledger for the test.
func newLedger(t *testing.T) *ledger {
	l := &ledger{effects: map[string][]effect{}, hooks: map[string]func(visit) bool{}}
	l.server = httptest.NewServer(l)
	t.Cleanup(l.server.Close)
	return l
}

// hook makes f run in each visit for the key, after its effect and before its
// answer. A handler that may not go on answers 503.
func (l *ledger) hook(key string, f func(visit) (goOn bool)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hooks[key] = f
}

// ServeHTTP answers a visit with the id of its effect.
func (l *ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var v visit
	if err := json.NewDecoder(r.Body).Decode(&v); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	id, hook := l.note(v)
	if hook != nil && !hook(v) {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	_, _ = fmt.Fprint(w, id)
}

// note writes the effect down.
func (l *ledger) note(v visit) (id string, hook func(visit) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v.Charge {
		l.serial++
		id = fmt.Sprintf("charge-%d", l.serial)
		l.effects[v.Key] = append(l.effects[v.Key], effect{v, id})
	}
	if own, found := l.hooks[v.Key]; found {
		return id, own
	}
	return id, l.always
}

// of returns the effects for a key.
func (l *ledger) of(key string) []effect {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]effect(nil), l.effects[key]...)
}
