package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.TestMode)
	suite.Main(m)
}

// The program shows a request that waits as one trace: the client, the service, the wait and the
// work. It ends by itself.
func TestTheProgramShowsAWaitInOneTrace(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := program{out: &out, addr: "127.0.0.1:0", work: 300 * time.Millisecond}
	if err := p.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	const indent, bar = `\n {2}`, ` +\d+ ms [·█]+ +\d+ ms`
	for what, pattern := range map[string]string{
		"a request without a wait": `trace \w{8}` + indent + `client 1` + bar +
			indent + ` {2}POST /accounts/:id/transfers` + bar + ` {2}201` +
			indent + ` {4}settle` + bar + `\n\n`,
		"a request that waits": `trace \w{8}` + indent + `client \d` + bar +
			indent + ` {2}POST /accounts/:id/transfers` + bar + ` {2}201` +
			indent + ` {4}reqlock\.acquire` + bar + ` {2}acquired, passed, account` +
			indent + ` {4}settle` + bar + `\n\n`,
		"a request that is refused": `trace \w{8}` + indent + `client 2` + bar +
			indent + ` {2}POST /accounts/:id/withdrawals` + bar + ` {2}409` +
			indent + ` {4}reqlock\.acquire` + bar + ` {2}busy, account\n\n`,
		"a copy": indent + ` {2}POST /payments` + bar + ` {2}201` +
			indent + ` {4}reqlock\.acquire` + bar + ` {2}replayed, payment\n\n`,
		"the waits":                         `reqlock_acquire_duration_seconds_count{reqlock_lock_name="account",reqlock_operation="lock",reqlock_outcome="acquired"} 5\n`,
		"the refusal":                       `reqlock_acquire_duration_seconds_count{reqlock_lock_name="account",reqlock_operation="lock",reqlock_outcome="busy"} 1\n`,
		"the outcomes that are unknown now": `reqlock_outcome_open 0\n`,
		"the leases now":                    `reqlock_lease_active{reqlock_lock_name="account",reqlock_operation="lock"} 0\n`,
	} {
		if !regexp.MustCompile(pattern).MatchString(out.String()) {
			t.Errorf("does not show %s", what)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

// With -serve the program goes on until it is interrupted.
func TestTheProgramServesUntilItIsInterrupted(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	said, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- program{out: out, addr: "127.0.0.1:0", work: time.Millisecond, serve: true}.run(ctx)
		_ = out.Close()
	}()
	url := regexp.MustCompile(`http://[0-9.:]+`)
	serving := false
	for lines := bufio.NewScanner(said); lines.Scan(); {
		serving = serving || strings.Contains(lines.Text(), "Serving until interrupted")
		if found := url.FindString(lines.Text()); serving && found != "" {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, found+"/metrics", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := newClient().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			if !strings.Contains(string(text), "reqlock_hold_duration_seconds_bucket{") {
				t.Errorf("%s", text)
			}
			interrupt()
		}
	}
	if err := <-ended; err != nil || !serving {
		t.Errorf("serving: %t, error: %v", serving, err)
	}
}
