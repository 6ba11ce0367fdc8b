package main

import (
	"bytes"
	"context"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// startServing runs the program with -serve, with the given frameworks or with all.
// It returns the URLs of the HTTP services, the output, and a function that stops the
// program.
func startServing(t *testing.T, frameworks ...framework) (urls []string, out *outputBuffer, stop func() (code int)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	p, out := newProgram("", frameworks...)
	p.serve, p.scenarios = true, firstScenarios(1)
	done := make(chan int, 1)
	go func() { done <- p.run(ctx) }()
	suite.Eventually(t, "the services are up", func() bool { return strings.HasSuffix(out.String(), "Bank/Transfer\n") })
	for line := range strings.Lines(out.String()) {
		if line, ok := strings.CutPrefix(line, "    url="); ok {
			url, _, _ := strings.Cut(line, " ")
			urls = append(urls, url)
		}
	}
	if len(urls) != 3 {
		t.Errorf("the URLs are %q\n%s", urls, out)
	}
	return urls, out, func() int {
		cancel()
		return <-done
	}
}

// linesOf returns the lines of the output that begin with a command.
func linesOf(out *outputBuffer, command string) (lines []string) {
	for line := range strings.Lines(out.String()) {
		if line = strings.TrimSpace(line); strings.HasPrefix(strings.TrimPrefix(line, "time "), command+" ") {
			lines = append(lines, line)
		}
	}
	return lines
}

// A try is lines for a shell, and their expected output.
type try struct {
	name  string
	lines []string
	want  []string
	took  *regexp.Regexp // if not nil, matches how long the second of two orders waited
	twice *regexp.Regexp // if not nil, matches two equal texts
}

// runAll runs all tries at once, since they mostly sleep, and then checks their
// output.
func runAll(t *testing.T, tries []try) {
	t.Helper()
	printed, errs := make([][]byte, len(tries)), make([]error, len(tries))
	var shells sync.WaitGroup
	for i, try := range tries {
		shells.Go(func() {
			shell := exec.CommandContext(t.Context(), "bash", "-c", strings.Join(try.lines, "\n"))
			printed[i], errs[i] = shell.CombinedOutput()
		})
	}
	shells.Wait()
	for i, try := range tries {
		t.Run(try.name, func(t *testing.T) { try.check(t, printed[i], errs[i]) })
	}
}

func (try try) check(t *testing.T, printed []byte, err error) {
	t.Helper()
	if err != nil && !strings.Contains(string(printed), "Aborted") { // grpcurl reports a refused call as an error
		t.Error(err)
	}
	for _, want := range try.want {
		if !strings.Contains(string(printed), want) {
			t.Errorf("%s is missing in\n%s", want, printed)
		}
	}
	if try.took != nil && !try.took.Match(printed) {
		t.Errorf("%v is missing in\n%s", try.took, printed)
	}
	if try.twice == nil {
		return
	}
	if found := try.twice.FindAll(printed, -1); len(found) != 2 || !bytes.Equal(found[0], found[1]) {
		t.Errorf("not the same twice: %q in\n%s", found, printed)
	}
}

// withLongPauses lengthens the pauses in shell lines, for a busy machine: the first of
// two requests must have its lock within 2 s, and the second one must arrive within the
// next 4 s. The second order waits about 4 s, and at least 1 s if its request is 3 s late.
func withLongPauses(lines []string) []string {
	for i := range lines {
		lines[i] = strings.NewReplacer("sleep 0.5", "sleep 2", "slow=3s", "slow=6s", "slow: 3s", "slow: 6s").Replace(lines[i])
	}
	return lines
}

func skipWithout(t *testing.T, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
}

func TestCurlLinesWorkAsPrinted(t *testing.T) {
	t.Parallel()
	skipWithout(t, "bash", "curl")
	urls, out, stop := startServing(t)
	t.Cleanup(func() { stop() })
	lines := withLongPauses(linesOf(out, "curl"))
	if len(lines) != 8 {
		t.Fatalf("%d lines of curl\n%s", len(lines), out)
	}
	var tries []try
	for _, url := range urls {
		to := []string{"url=" + url}
		tries = append(tries, []try{
			{
				name: "transfers at " + url, lines: slices.Concat(to, lines[:4]),
				want: []string{`"cents":9400}`, "409 Conflict", "Retry-After: 1", `"code":"busy"`, `"cents":8900}`},
			},
			{
				name: "orders at " + url, lines: slices.Concat(to, lines[4:6]),
				want: []string{`{"number":1}`, `{"number":2}`},
				took: regexp.MustCompile(`after [1-9]\.`),
			},
			{
				name: "payments at " + url, lines: slices.Concat(to, lines[6:]),
				want:  []string{"Idempotent-Replayed: true"},
				twice: regexp.MustCompile(`{"number":[0-9]+,"at":".*","cents":9500}`),
			},
		}...)
	}
	runAll(t, tries)
}

func TestGrpcurlLinesWorkAsPrinted(t *testing.T) {
	t.Parallel()
	skipWithout(t, "bash", "grpcurl")
	_, out, stop := startServing(t)
	t.Cleanup(func() { stop() })
	lines := withLongPauses(linesOf(out, "grpcurl"))
	if len(lines) != 8 {
		t.Fatalf("%d lines of grpcurl\n%s", len(lines), out)
	}
	var to []string
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "    addr=") {
			to = append(to, line)
		}
	}
	runAll(t, []try{
		{
			name: "transfers", lines: slices.Concat(to, lines[:4]),
			want: []string{`"cents": "9400"`, "Code: Aborted", "RetryInfo", "BUSY", `"cents": "8900"`},
		},
		{
			name: "orders", lines: slices.Concat(to, lines[4:6]),
			want: []string{`"number": "1"`, `"number": "2"`},
			took: regexp.MustCompile(`real\t0m[1-9]\.`),
		},
		{
			name: "payments", lines: slices.Concat(to, lines[6:]),
			want:  []string{"idempotent-replayed: true", `"cents": "9500"`},
			twice: regexp.MustCompile("transfer-at: .*"),
		},
	})
}

//faults:row 41: a whole service
func TestRequestsUnderWayMayEnd(t *testing.T) {
	t.Parallel()
	inside := make(chan struct{}, 1)
	frameworks := allFrameworks()
	frameworks[0] = changedNetHTTP(func(s *nethttpService, _ *core.Locker) {
		user := s.user
		s.user = func(next http.Handler) http.Handler {
			return user(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				inside <- struct{}{}
				next.ServeHTTP(w, r)
			}))
		}
	})
	urls, out, stop := startServing(t, frameworks...)
	url := urls[0]
	client := newHTTPClient(url)
	defer client.close()
	begun := time.Now()
	answers := make(chan answer, 1)
	go func() {
		got, err := client.post(t.Context(), "ann", "/me/orders?slow=1s", map[string]any{"item": "tea"})
		if err != nil {
			t.Error(err)
		}
		answers <- got
	}()
	suite.Eventually(t, "the order has its lock", func() bool { return len(inside) == 1 })
	if code := stop(); code != exitExpected {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if took := time.Since(begun); took < time.Second {
		t.Errorf("stopped after %v, before the request was over", took)
	}
	if got := <-answers; got.Status != "201" {
		t.Errorf("the request under way was answered with %q", got.Status)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if response, err := client.http.Do(request); err == nil {
		response.Body.Close()
		t.Error("the service still answers")
	}
}
