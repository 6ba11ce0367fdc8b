package adapter

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
)

// The observer learns of a request that is refused before its attempt, and of mistakes of the
// program.
func TestObserverLearnsOfRequestsThatCannotBegin(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		key     core.Key[*http.Request]
		opts    []core.Option
		change  func(*http.Request) *http.Request
		want    []core.EventKind
		refused error
	}{
		"no key": {key: ofHeader, change: func(r *http.Request) *http.Request {
			r.Header.Del("Idempotency-Key")
			return r
		}, want: []core.EventKind{core.Refused}, refused: core.ErrNoKey},
		"no fingerprint": {
			key: ofHeader, opts: []core.Option{core.WithFingerprint(func(*http.Request) ([]byte, error) { return nil, broken })},
			want: []core.EventKind{core.Refused}, refused: broken,
		},
		"a wildcard that the route lacks": {key: PathKey("PathValue", "id", func(r *http.Request) PathValue {
			return PathValue{Route: r.Pattern, Missing: true}
		}), change: func(r *http.Request) *http.Request {
			r.Pattern = "POST /payments"
			return r
		}, want: []core.EventKind{core.Refused, core.Warned}, refused: core.ErrNoKey},
		"a wait that the server cuts off": {key: ofHeader, change: func(r *http.Request) *http.Request {
			server := &http.Server{WriteTimeout: time.Second}
			return r.WithContext(context.WithValue(r.Context(), http.ServerContextKey, server))
		}, want: []core.EventKind{core.Warned, core.Acquired}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var kinds []core.EventKind
			var refused error
			locks := locktest.New(t, core.WithWait(2*time.Second), core.WithObserver(func(e core.Event) {
				if kinds = append(kinds, e.Kind); e.Kind == core.Refused {
					refused = e.Err
				}
			}))
			endpoint, err := newIdempotent(locks.Locker, test.key, test.opts)
			if err != nil {
				t.Fatal(err)
			}
			kinds = nil
			r := payment(t, "k", "")
			if test.change != nil {
				r = test.change(r)
			}
			x, err := begin(endpoint, r)
			if (err == nil) != (test.refused == nil) || !slices.Equal(kinds, test.want) || !errors.Is(refused, test.refused) {
				t.Errorf("%v: events %v, refused by %v", err, kinds, refused)
			}
			if x != nil {
				_ = x.attempt.Abort(t.Context())
			}
		})
	}
}
