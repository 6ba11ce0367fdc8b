package adapter

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
)

// If a PUT or a DELETE runs as without Idempotent, the observer gets a warning, once for each
// pattern. The text says what to write.
func TestUncoveredMethod(t *testing.T) {
	t.Parallel()
	const pattern = "/payments/{id}"
	for name, test := range map[string]struct {
		requests [][2]string // the method and the pattern
		methods  []core.Option
		want     []string // what the warnings contain
	}{
		"PUT":              {[][2]string{{"PUT", pattern}}, nil, []string{`PUT on the route "/payments/{id}": write core.WithMethods("POST", "PATCH", "PUT")`}},
		"put":              {[][2]string{{"put", pattern}}, nil, []string{"PUT"}},
		"DELETE":           {[][2]string{{"DELETE", pattern}}, nil, []string{`WithMethods("POST", "PATCH", "DELETE")`}},
		"twice":            {[][2]string{{"PUT", pattern}, {"PUT", pattern}}, nil, []string{pattern}},
		"two patterns":     {[][2]string{{"PUT", pattern}, {"PUT", "/refunds"}}, nil, []string{pattern, "/refunds"}},
		"two methods":      {[][2]string{{"PUT", pattern}, {"DELETE", pattern}}, nil, []string{"PUT", "DELETE"}},
		"no pattern":       {[][2]string{{"PUT", ""}, {"PUT", ""}}, nil, []string{"a route without a pattern"}},
		"safe and unknown": {[][2]string{{"GET", pattern}, {"HEAD", pattern}, {"OPTIONS", pattern}, {"PURGE", pattern}}, nil, nil},
		"chosen":           {[][2]string{{"PUT", pattern}}, []core.Option{core.WithMethods("POST")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var warned []core.Event
			locks := locktest.New(t, core.WithObserver(func(e core.Event) {
				mu.Lock()
				defer mu.Unlock()
				warned = append(warned, e)
			})).Locker
			endpoint := newEndpoint(t, locks, test.methods...)
			for _, sent := range test.requests {
				r := payment(t, "secret", "")
				r.Method, r.URL.Path, r.Pattern = sent[0], "/payments/secret", sent[1]
				if x, err := begin(endpoint, r); x != nil || err != nil {
					t.Errorf("%s: %v", sent[0], err)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			warned = slices.DeleteFunc(warned, func(e core.Event) bool { return e.Kind != core.Warned })
			if len(warned) != len(test.want) {
				t.Fatalf("%d warnings, want %d: %v", len(warned), len(test.want), warned)
			}
			for i, e := range warned {
				text := e.Err.Error()
				if !strings.HasPrefix(text, "reqlock: test: Idempotent does not cover ") || !strings.Contains(text, test.want[i]) ||
					strings.Contains(text, "secret") {
					t.Errorf("%q does not contain %q", text, test.want[i])
				}
			}
		})
	}
}
