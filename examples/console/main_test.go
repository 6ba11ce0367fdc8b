package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// ask sends a request: a form, or none for a GET. It returns the page that it leads to.
func ask(t *testing.T, client *http.Client, address string, form url.Values) string {
	t.Helper()
	method := http.MethodGet
	if form != nil {
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d, %v", address, answer.StatusCode, err)
	}
	return string(page)
}

// The program shows locks that move and a payment whose outcome is unknown, which a form resolves. It
// ends when it is interrupted.
func TestTheProgramShowsABusyBank(t *testing.T) {
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
	go func() { _, _ = io.Copy(io.Discard, said) }()
	address := regexp.MustCompile(`http://\S+`).FindString(lines.Text())
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

	// A page of another site whose name leads to this machine (DNS rebinding) gets nothing.
	foreign, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	foreign.Host = "evil.example"
	answer, err := client.Do(foreign)
	if err != nil {
		t.Fatal(err)
	}
	if _ = answer.Body.Close(); answer.StatusCode != http.StatusNotFound {
		t.Errorf("%s: %d", foreign.Host, answer.StatusCode)
	}

	payment := regexp.MustCompile(`\?attempt=[0-9a-f]{12}`)
	found := ""
	suite.Eventually(t, "the page shows locks, waiters and an unknown outcome", func() bool {
		page := ask(t, client, address, nil)
		found = payment.FindString(page)
		return found != "" && regexp.MustCompile(`[1-9]\d* process`).MatchString(page) && strings.Contains(page, "bank on pod-3")
	})
	attempt := regexp.MustCompile(`name="attempt" value="(\w+)"`).FindStringSubmatch(ask(t, client, address+found, nil))
	if attempt == nil {
		t.Fatal("the page has no form")
	}
	page := ask(t, client, address+found, url.Values{"attempt": {attempt[1]}, "resolution": {"done"}, "reason": {"a test"}})
	if !strings.Contains(page, "The request is done.") {
		t.Error(page)
	}
	interrupt()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
