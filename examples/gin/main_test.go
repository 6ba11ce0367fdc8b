package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.TestMode)
	suite.Main(m)
}

// newRequest returns a request of ada.
func newRequest(ctx context.Context, method, url, contentType, body string) *http.Request {
	r := httptest.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	r.RequestURI = "" // as http.Client wants it
	r.Header.Set("Content-Type", contentType)
	r.SetBasicAuth("ada", "secret")
	return r
}

// The program starts with an embedded Redis, prints its address, answers requests,
// and ends when it is interrupted.
func TestRun(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	said, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, out, "127.0.0.1:0", "")
		_ = out.Close()
	}()
	lines := bufio.NewScanner(said)
	if !lines.Scan() {
		t.Fatalf("it says nothing: %v", <-ended)
	}
	url := regexp.MustCompile(`http://[0-9.:]+`).FindString(lines.Text())
	go func() { _, _ = io.Copy(io.Discard, said) }()

	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(newRequest(t.Context(), http.MethodGet, url+"/me/limit", "", ""))
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK || string(body) != `{"limit":50}` {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
	interrupt()
	if err := <-ended; err != nil {
		t.Errorf("run: %v", err)
	}
}

// A program without its Redis reports that, and does not print a password.
func TestRunWithoutRedis(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"redis://:secret@127.0.0.1:1/0?dial_timeout=1s&max_retries=-1", "http://:secret@"} {
		err := run(t.Context(), io.Discard, "127.0.0.1:0", url)
		if err == nil || !strings.Contains(err.Error(), "REDIS_URL") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v", err)
		}
	}
}

// The locks of the routes are those of their accounts and users.
func TestRoutes(t *testing.T) {
	t.Parallel()
	const form, json = gin.MIMEPOSTForm, gin.MIMEJSON
	for name, test := range map[string]struct {
		held         string
		method, path string
		contentType  string
		body         string
		status       int
	}{
		"withdrawal":                     {"", "POST", "/accounts/ada/withdrawals", form, "amount=30", 201},
		"withdrawal, too much":           {"", "POST", "/accounts/ada/withdrawals", form, "amount=101", 402},
		"withdrawal, odd":                {"", "POST", "/accounts/ada/withdrawals", form, "amount=x", 400},
		"withdrawal, held":               {"account:ada", "POST", "/accounts/ada/withdrawals", form, "amount=30", 409},
		"withdrawal from another":        {"account:bob", "POST", "/accounts/bob/withdrawals", form, "amount=30", 403},
		"transfer":                       {"", "POST", "/transfers", json, `{"from":"ada","to":"bob","amount":10}`, 201},
		"transfer, too much":             {"", "POST", "/transfers", json, `{"from":"ada","to":"bob","amount":101}`, 402},
		"transfer to an unknown account": {"", "POST", "/transfers", json, `{"from":"ada","to":"eve","amount":10}`, 404},
		"transfer, odd":                  {"", "POST", "/transfers", json, `{"from":"ada","to":"ada","amount":10}`, 400},
		"transfer from another":          {"account:bob", "POST", "/transfers", json, `{"from":"bob","to":"ada","amount":10}`, 403},
		"read":                           {"user:ada", "GET", "/me/limit", "", "", 200},
		"write":                          {"user:bob", "PUT", "/me/limit", form, "limit=7", 200},
		"write, odd":                     {"", "PUT", "/me/limit", form, "limit=x", 400},
		"unknown":                        {"", "GET", "/unknown", "", "", 404},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := locktest.New(t)
			if test.held != "" {
				defer locks.Hold(test.held)()
			}
			w := httptest.NewRecorder()
			routes(locks.Locker, newBank(0), io.Discard).ServeHTTP(w,
				newRequest(t.Context(), test.method, test.path, test.contentType, test.body))
			if w.Code != test.status {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
}

// Ten transfers at once move ten times the amount. Waiting requests form a line.
func TestConcurrentTransfersLoseNoMoney(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	b := newBank(0)
	h := routes(locks.Locker, b, io.Discard)
	release := locks.Hold("account:bob")
	var clients sync.WaitGroup
	for range 10 {
		clients.Go(func() {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, newRequest(t.Context(), http.MethodPost, "/transfers", gin.MIMEJSON, `{"from":"ada","to":"bob","amount":10}`))
			if w.Code != http.StatusCreated {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
	locks.AwaitWaiting("account:ada", 9) // one has that, and waits for bob's
	release()
	clients.Wait()
	for account, want := range map[string]int{"ada": 0, "bob": 200} {
		if got, _ := number(&b.balances, account); got != want {
			t.Errorf("%s has %d, not %d", account, got, want)
		}
	}
}

// A transfer that is sent again with its key is not made again. Another transfer with
// that key is refused.
func TestTransferSentAgain(t *testing.T) {
	t.Parallel()
	b := newBank(0)
	h := routes(locktest.New(t).Locker, b, io.Discard)
	send := func(body string) *httptest.ResponseRecorder {
		r := newRequest(t.Context(), http.MethodPost, "/transfers", gin.MIMEJSON, body)
		r.Header.Set("Idempotency-Key", `"8e03978e"`)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	const body = `{"from":"ada","to":"bob","amount":10}`
	first, again := send(body), send(body)
	if first.Code != http.StatusCreated || again.Code != first.Code || again.Body.String() != first.Body.String() {
		t.Errorf("%d %s, then %d %s", first.Code, first.Body, again.Code, again.Body)
	}
	if mark := again.Header().Get("Idempotent-Replayed"); mark != "true" {
		t.Errorf("marked %q", mark)
	}
	if other := send(`{"from":"ada","to":"bob","amount":20}`); other.Code != http.StatusUnprocessableEntity {
		t.Errorf("another one: %d %s", other.Code, other.Body)
	}
	if left, _ := number(&b.balances, "ada"); left != 90 {
		t.Errorf("%d are left", left)
	}
}

// A withdrawal stops if its context ends because the client disconnects or the lock
// is lost.
func TestWorkStopsWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	ctx, leave := context.WithCancel(t.Context())
	leave()
	c, _ := gin.CreateTestContext(httptest.NewRecorder())
	c.Request = newRequest(ctx, http.MethodPost, "/", gin.MIMEPOSTForm, "amount=30")
	c.AddParam("id", "ada")
	b := newBank(1 << 62)
	b.withdraw(c)
	if balance, _ := number(&b.balances, "ada"); balance != 100 || c.Writer.Status() != http.StatusServiceUnavailable {
		t.Errorf("balance %d, status %d", balance, c.Writer.Status())
	}
}
