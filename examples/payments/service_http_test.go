package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/core"
)

// newTestSite starts the stack of one framework.
func newTestSite(t *testing.T, on framework) *site {
	t.Helper()
	p, _ := newProgram("", on)
	s, err := p.start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s.sites[0]
}

func TestHTTPAnswers(t *testing.T) {
	t.Parallel()
	for _, on := range allFrameworks() {
		if on.Protocol == httpProtocol {
			t.Run(on.Name, func(t *testing.T) {
				t.Parallel()
				testHTTPAnswers(t, on)
			})
		}
	}
}

func testHTTPAnswers(t *testing.T, on framework) {
	s := newTestSite(t, on)
	held, err := s.locks.TryLock(t.Context(), "account:dave")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Release(context.Background()) }()
	read, err := s.locks.With(core.WithShared(true)).TryLock(t.Context(), "account:carol")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = read.Release(context.Background()) }()

	tests := []struct {
		name, user, request, body string
		status                    int
	}{
		{"done", "alice", "POST /accounts/alice/transfer", `{"to":"bob","cents":1}`, 200},
		{"all of it", "bob", "POST /accounts/bob/settle", `{"to":"alice","cents":10001}`, 200},
		{"too much", "bob", "POST /accounts/bob/transfer", `{"to":"alice","cents":1}`, 422},
		{"nothing", "alice", "POST /accounts/alice/transfer", `{"to":"bob","cents":0}`, 400},
		{"to oneself", "alice", "POST /accounts/alice/transfer", `{"to":"alice","cents":1}`, 400},
		{"to an unknown account", "alice", "POST /accounts/alice/transfer", `{"to":"zoe","cents":1}`, 404},
		{"no payee", "alice", "POST /accounts/alice/transfer", `{"cents":1}`, 400},
		{"no JSON", "alice", "POST /accounts/alice/transfer", `to=bob`, 400},
		{"cents are no number", "alice", "POST /accounts/alice/transfer", `{"to":"bob","cents":"1"}`, 400},
		{"too long", "alice", "POST /accounts/alice/transfer", `{"to":"` + strings.Repeat("b", maxBody) + `"}`, 413},
		{"locked payer", "dave", "POST /accounts/dave/transfer", `{"to":"bob","cents":1}`, 409},
		{"locked payee", "alice", "POST /accounts/alice/transfer", `{"to":"dave","cents":1}`, 409},
		{"no user", "", "POST /accounts/dave/transfer", `{"to":"bob","cents":1}`, 401},
		{"not the owner, locked or not", "alice", "POST /accounts/dave/transfer", `{"to":"bob","cents":1}`, 403},
		{"reading beside a reader", "carol", "GET /accounts/carol", "", 200},
		{"a transfer beside a reader", "carol", "POST /accounts/carol/transfer", `{"to":"bob","cents":1}`, 409},
		{"reading another's", "alice", "GET /accounts/dave", "", 403},
		{"reading an unknown account", "zoe", "GET /accounts/zoe", "", 404},
		{"order", "ann", "POST /me/orders", `{"item":"tea"}`, 201},
		{"order without a user", "", "POST /me/orders", `{"item":"tea"}`, 401},
		{"order without JSON", "ann", "POST /me/orders", `tea`, 400},
		{"slow", "ann", "POST /me/orders?slow=1ms", `{"item":"tea"}`, 201},
		{"too slow", "ann", "POST /me/orders?slow=1h", `{"item":"tea"}`, 400},
		{"no duration", "ann", "POST /me/orders?slow=3", `{"item":"tea"}`, 400},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			method, target, _ := strings.Cut(test.request, " ")
			r, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.server.Addr+target, strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			if test.user != "" {
				r.Header.Set("Authorization", "Bearer "+test.user)
			}
			client := newHTTPClient("")
			defer client.close()
			response, err := client.http.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if response.StatusCode != test.status {
				t.Errorf("%d, not %d", response.StatusCode, test.status)
			}
		})
	}
}

// panics is a clearing that panics.
func panics(context.Context, string) error { panic("broken") }

func TestPanicIsAnsweredAndFreesTheLock(t *testing.T) {
	t.Parallel()
	wants := map[string]string{"net/http": "500", "Gin": "500", "Echo": "500", "gRPC": "INTERNAL"}
	for _, on := range allFrameworks() {
		t.Run(on.Name, func(t *testing.T) {
			t.Parallel()
			s := newTestSite(t, on)
			s.bank.clearing = panics
			client, err := on.Dial(s.server.Addr)
			if err != nil {
				t.Fatal(err)
			}
			defer client.close()
			got, err := client.order(t.Context(), "ann", "tea")
			if err != nil || got.Status != wants[on.Name] {
				t.Errorf("%v, %v", got, err)
			}
			lock, err := s.locks.TryLock(t.Context(), "user:ann")
			if err != nil {
				t.Fatalf("the lock was not freed: %v", err)
			}
			if err := lock.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestNothingIsWrittenAfterTheLockIsLost(t *testing.T) {
	t.Parallel()
	ctx, lose := context.WithCancelCause(t.Context())
	accounts := newBank(map[string]int64{"alice": 5, "bob": 0}, func(context.Context, string) error {
		lose(core.ErrLost)
		return nil
	}, func() error { return nil })
	if _, err := accounts.transfer(ctx, "alice", "bob", 5); !errors.Is(err, core.ErrLost) {
		t.Errorf("transfer: %v", err)
	}
	if _, err := accounts.order(ctx, "ann", "tea"); !errors.Is(err, core.ErrLost) {
		t.Errorf("order: %v", err)
	}
	if left, _ := accounts.balance("alice"); left != 5 {
		t.Errorf("%d cents left", left)
	}
	if orders := accounts.ordersOf("ann"); len(orders) > 0 {
		t.Errorf("orders: %q", orders)
	}
}
