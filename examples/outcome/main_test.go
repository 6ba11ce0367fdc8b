package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/nethttplock"
)

func TestMain(m *testing.M) { suite.Main(m) }

// A bank is a service with a payment whose outcome is unknown, and the program beside it.
type bank struct {
	program program
	out     *strings.Builder
	key     string // of the payment
	pay     func() *httptest.ResponseRecorder
}

func newBank(t *testing.T) *bank {
	t.Helper()
	server := redistest.Start(t)
	locks := core.Must(core.New(server.Client(t), core.WithPrefix("bank:"), core.WithRetention(time.Hour)))
	t.Cleanup(func() { _ = locks.Close(t.Context()) })
	mux := http.NewServeMux()
	mux.Handle("POST /payments", nethttplock.Idempotent(locks, nethttplock.IdempotencyKey())(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })))
	key, err := core.EndpointKey("POST", "POST /payments", "8e03978e")
	if err != nil {
		t.Fatal(err)
	}
	out := &strings.Builder{}
	b := &bank{
		program: program{out: out, redisURL: "redis://" + server.Addr(), prefix: "bank:", retention: time.Hour},
		out:     out,
		key:     key,
		pay: func() *httptest.ResponseRecorder {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/payments", nil)
			r.Header.Set("Idempotency-Key", "8e03978e")
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, r)
			return w
		},
	}
	if got := b.pay(); got.Code != http.StatusBadGateway {
		t.Fatalf("the first payment: %d %s", got.Code, got.Body)
	}
	return b
}

// see runs the program without a resolution, and returns the "seen" that it prints.
func (b *bank) see(t *testing.T, state string) (seen string) {
	t.Helper()
	b.out.Reset()
	if err := b.program.run(t.Context(), []string{b.key}); err != nil {
		t.Fatal(err)
	}
	pattern := `^state: +` + state + `\nseen: +([0-9a-f]{40})\n(attempts: +1\n)?retention: (59m59|1h0m0)[0-9.]*m?s\n$`
	found := regexp.MustCompile(pattern).FindStringSubmatch(b.out.String())
	if found == nil {
		t.Fatalf("the program prints\n%s", b.out)
	}
	return found[1]
}

func TestOutcomeIsShownAndResolved(t *testing.T) {
	t.Parallel()
	for resolution, test := range map[string]struct {
		more   []string
		state  string // afterwards
		status int    // of a copy
		body   string
	}{
		"done":     {state: "done", status: http.StatusConflict, body: `"code":"completed_unreplayable"`},
		"answered": {more: []string{"201", `{"id":7}`}, state: "answered", status: http.StatusCreated, body: `{"id":7}`},
		"not_done": {status: http.StatusBadGateway},
	} {
		t.Run(resolution, func(t *testing.T) {
			t.Parallel()
			b := newBank(t)
			args := append([]string{b.key, resolution, b.see(t, "unknown")}, test.more...)
			if err := b.program.run(t.Context(), args); err != nil {
				t.Fatal(err)
			}
			if test.state != "" {
				b.see(t, test.state)
			} else if err := b.program.run(t.Context(), []string{b.key}); !errors.Is(err, core.ErrNotFound) {
				t.Errorf("after not_done: %v", err)
			}
			if got := b.pay(); got.Code != test.status || !strings.Contains(got.Body.String(), test.body) {
				t.Errorf("a copy gets %d %s", got.Code, got.Body)
			}
		})
	}
}

func TestWrongArgumentsAreRefused(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	seen := b.see(t, "unknown")
	for want, args := range map[string][]string{
		"usage: ":                  {},
		"usage: outcome":           {b.key, "delete", seen},
		"usage: outcome [":         {b.key, "answered", seen, "201"},
		"the status of the answer": {b.key, "answered", seen, "created", "{}"},
		"reqlock: AttemptID":       {b.key, "done", "1234"},
		core.ErrNotFound.Error():   {"another-key"},
	} {
		if err := b.program.run(t.Context(), args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", args, err)
		}
	}
	b.program.redisURL = ""
	if err := b.program.run(t.Context(), []string{b.key}); err == nil || !strings.Contains(err.Error(), "REDIS_URL") {
		t.Errorf("without a Redis: %v", err)
	}
}
