package crash

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// A ledgerCall is a call of the ledger by a handler.
type ledgerCall struct {
	Charge  bool   // the effect; otherwise the handler has only started
	Process int    // of the handler
	Key     string // of the request
	Number  int    // of the attempt
	Token   string // of its lease, unique for each attempt
}

// An effect is a charge.
type effect struct {
	ledgerCall
	id string
}

// A ledger counts the effects of a service. It is safe for concurrent use.
type ledger struct {
	server *httptest.Server

	mu      sync.Mutex
	effects map[string][]effect
	hooks   map[string]func(ledgerCall) (proceed bool)
	always  func(ledgerCall) (proceed bool)
	serial  int
}

// newLedger serves a ledger until the end of the test.
func newLedger(t *testing.T) *ledger {
	l := &ledger{effects: map[string][]effect{}, hooks: map[string]func(ledgerCall) bool{}}
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

// add records the effect. It returns the id of the effect and the hook of the key.
func (l *ledger) add(v ledgerCall) (id string, hook func(ledgerCall) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v.Charge {
		l.serial++
		id = fmt.Sprintf("charge-%d", l.serial)
		l.effects[v.Key] = append(l.effects[v.Key], effect{v, id})
	}
	if firstDiffers, found := l.hooks[v.Key]; found {
		return id, firstDiffers
	}
	return id, l.always
}

// of returns the effects of a key.
func (l *ledger) of(key string) []effect {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]effect(nil), l.effects[key]...)
}
