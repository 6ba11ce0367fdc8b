package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// start runs the program until the end of the test, and returns its URL.
func start(t *testing.T, b *bank) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	screen, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- run(ctx, out, "127.0.0.1:0", "", b) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	printed := make([]byte, 4096)
	n, err := screen.Read(printed)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`http://[\d.:]+`).FindString(string(printed[:n]))
}

// ask sends a request of a user and returns the status.
func ask(t *testing.T, user, method, target string, form url.Values) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, target, strings.NewReader(form.Encode()))
	if err != nil {
		t.Error(err)
		return 0
	}
	r.SetBasicAuth(user, "secret")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(r)
	if err != nil {
		t.Error(err)
		return 0
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

func TestServerStartsAndAnswers(t *testing.T) {
	t.Parallel()
	base := start(t, newBank(0))
	for name, test := range map[string]struct {
		user, method, path string
		want               int
	}{
		"a stranger":          {"eve", http.MethodGet, "/me/balance", http.StatusUnauthorized},
		"a user":              {"ada", http.MethodGet, "/me/balance", http.StatusOK},
		"a change":            {"ada", http.MethodPut, "/me/nickname", http.StatusNoContent},
		"another's account":   {"ada", http.MethodPost, "/accounts/bob/withdrawals", http.StatusForbidden},
		"no amount":           {"ada", http.MethodPost, "/accounts/ada/withdrawals", http.StatusBadRequest},
		"a transfer to none":  {"ada", http.MethodPost, "/transfers", http.StatusBadRequest},
		"what does not exist": {"ada", http.MethodGet, "/nothing", http.StatusNotFound},
	} {
		if got := ask(t, test.user, test.method, base+test.path, nil); got != test.want {
			t.Errorf("%s: %d", name, got)
		}
	}
}

// A transfer that is sent again with its key is not made again. Another transfer with
// that key is refused.
func TestTransferSentAgain(t *testing.T) {
	t.Parallel()
	b := newBank(0)
	h := routes(locktest.New(t).Locker, b)
	send := func(body string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/transfers", strings.NewReader(body))
		r.SetBasicAuth("ada", "secret")
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Idempotency-Key", `"8e03978e"`)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	first, again := send("to=bob&amount=10"), send("to=bob&amount=10")
	if first.Code != http.StatusCreated || again.Code != first.Code || again.Body.String() != first.Body.String() {
		t.Errorf("%d %s, then %d %s", first.Code, first.Body, again.Code, again.Body)
	}
	if mark := again.Header().Get("Idempotent-Replayed"); mark != "true" {
		t.Errorf("marked %q", mark)
	}
	if other := send("to=bob&amount=20"); other.Code != http.StatusUnprocessableEntity {
		t.Errorf("another one: %d %s", other.Code, other.Body)
	}
	if left, _ := b.of("ada"); left != 90 {
		t.Errorf("%d are left", left)
	}
}

// The requests of the printed curl commands have the printed results.
func TestPrintedCommandsHaveTheirResults(t *testing.T) {
	t.Parallel()
	pair := func(t *testing.T, b *bank, path string, form url.Values) <-chan int {
		t.Helper()
		target, answers := start(t, b)+path, make(chan int, 2)
		for range cap(answers) {
			go func() { answers <- ask(t, "ada", http.MethodPost, target, form) }()
		}
		return answers
	}
	left := func(t *testing.T, b *bank, want int) {
		t.Helper()
		if got, _ := b.of("ada"); got != want {
			t.Errorf("%d are left, not %d", got, want)
		}
	}
	t.Run("withdrawals", func(t *testing.T) {
		t.Parallel()
		b, refused := newBank(0), make(chan struct{})
		var calls atomic.Int32
		b.otherBank = func(context.Context) error {
			if calls.Add(1) == 1 {
				<-refused // the second withdrawal must arrive before the first one ends
			}
			return nil
		}
		answers := pair(t, b, "/accounts/ada/withdrawals", url.Values{"amount": {"30"}})
		second := <-answers
		close(refused)
		if first := <-answers; first != http.StatusCreated || second != http.StatusConflict {
			t.Errorf("%d, and before that %d", first, second)
		}
		left(t, b, 70)
	})
	t.Run("transfers", func(t *testing.T) {
		t.Parallel()
		b := newBank(200 * time.Millisecond) // a transfer that does not wait reads the old balance meanwhile
		answers := pair(t, b, "/transfers", url.Values{"to": {"bob"}, "amount": {"10"}})
		if one, other := <-answers, <-answers; one != http.StatusCreated || other != one {
			t.Errorf("%d and %d", one, other)
		}
		left(t, b, 80)
	})
}
