package main

import (
	"bytes"
	"context"
	"io"
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
	slow  <-chan struct{} // closed when the slow request of the lines runs; nil if they have none
	want  []string
	took  *regexp.Regexp // if not nil, matches how long the second of two orders waited
	twice *regexp.Regexp // if not nil, matches two equal texts
}

// runAll runs all tries at once, since they mostly wait, and then checks their
// output.
func runAll(t *testing.T, tries []try) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	printed, errs := make([][]byte, len(tries)), make([]error, len(tries))
	var shells sync.WaitGroup
	for i, try := range tries {
		shells.Go(func() {
			shell := exec.CommandContext(ctx, "bash", "-c", strings.Join(try.lines, "\n"))
			if try.slow != nil {
				shell.Stdin = afterClose{ctx, try.slow}
			}
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

// An afterClose is a reader of one empty line, which it returns once the channel is closed
// or the context ends.
type afterClose struct {
	ctx  context.Context
	slow <-chan struct{}
}

func (a afterClose) Read(p []byte) (int, error) {
	select {
	case <-a.slow:
	case <-a.ctx.Done():
	}
	p[0] = '\n'
	return 1, io.EOF
}

// withoutSleep changes shell lines, so that a busy machine cannot be too slow for them: the
// second of two requests is sent when the first one has its lock. It must arrive within two
// seconds. The second order waits about two seconds, and at least half a second if its
// request is 1.5 s late.
func withoutSleep(lines []string) []string {
	for i := range lines {
		lines[i] = strings.NewReplacer("sleep 0.5", "read", "slow=3s", "slow=2s", "slow: 3s", "slow: 2s").Replace(lines[i])
	}
	return lines
}

// A slowRequests has a channel for each kind of slow requests to a service. It is closed when
// the first request of the kind runs, with its locks.
type slowRequests struct{ transfer, order chan struct{} }

// observed returns the frameworks with services whose slow requests are observed.
func observed(frameworks []framework) ([]framework, []slowRequests) {
	observed, slow := slices.Clone(frameworks), make([]slowRequests, len(frameworks))
	for i, on := range frameworks {
		slow[i] = slowRequests{transfer: make(chan struct{}), order: make(chan struct{})}
		observed[i].Serve = func(ctx context.Context, addr string, b *bank, locks *core.Locker) (*server, error) {
			clearing := b.clearing
			b.clearing = func(ctx context.Context, operation string) error {
				switch isSlow, kind := ctx.Value(slowKey{}) != nil, strings.Fields(operation)[0]; {
				case isSlow && kind == "order":
					close(slow[i].order)
				case isSlow:
					close(slow[i].transfer)
				}
				return clearing(ctx, operation)
			}
			return on.Serve(ctx, addr, b, locks)
		}
	}
	return observed, slow
}

// skipWithout skips the test on a machine without one of the tools. In CI the test fails then.
func skipWithout(t *testing.T, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			suite.SkipOrFail(t, "%v", err)
		}
	}
}

func TestCurlLinesWorkAsPrinted(t *testing.T) {
	t.Parallel()
	skipWithout(t, "bash", "curl")
	frameworks, slow := observed(allFrameworks())
	urls, out, stop := startServing(t, frameworks...)
	t.Cleanup(func() { stop() })
	lines := withoutSleep(linesOf(out, "curl"))
	if len(lines) != 8 {
		t.Fatalf("%d lines of curl\n%s", len(lines), out)
	}
	var tries []try
	for i, url := range urls {
		to := []string{"url=" + url}
		tries = append(tries, []try{
			{
				name: "transfers at " + url, lines: slices.Concat(to, lines[:4]), slow: slow[i].transfer,
				want: []string{`"cents":9400}`, "409 Conflict", "Retry-After: 1", `"code":"busy"`, `"cents":8900}`},
			},
			{
				name: "orders at " + url, lines: slices.Concat(to, lines[4:6]), slow: slow[i].order,
				want: []string{`{"number":1}`, `{"number":2}`},
				took: regexp.MustCompile(`after (0\.[5-9]|[1-9])`),
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
	skipWithout(t, "bash")
	if _, err := exec.LookPath("grpcurl"); err != nil {
		t.Skipf("%v; the workflow on GitHub installs it, .ci/run does not", err)
	}
	frameworks, slow := observed(allFrameworks())
	_, out, stop := startServing(t, frameworks...)
	t.Cleanup(func() { stop() })
	lines := withoutSleep(linesOf(out, "grpcurl"))
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
			name: "transfers", lines: slices.Concat(to, lines[:4]), slow: slow[3].transfer,
			want: []string{`"cents": "9400"`, "Code: Aborted", "RetryInfo", "BUSY", `"cents": "8900"`},
		},
		{
			name: "orders", lines: slices.Concat(to, lines[4:6]), slow: slow[3].order,
			want: []string{`"number": "1"`, `"number": "2"`},
			took: regexp.MustCompile(`real\t0m(0\.[5-9]|[1-9])`),
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
