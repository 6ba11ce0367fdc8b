package main

import (
	"bytes"
	"context"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// await polls a condition until it holds.
func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// startServing runs the program with -serve, and returns the URLs of the HTTP
// services, what is on the screen, and the function that ends the run.
func startServing(t *testing.T) (urls []string, out *screen, stop func() (code int)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	p, out := newProgram("")
	p.serve, p.parts = true, first(1)
	done := make(chan int, 1)
	go func() { done <- p.run(ctx) }()
	await(t, "the services are up", func() bool { return strings.HasSuffix(out.String(), "Bank/Transfer\n") })
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

// linesOf returns the lines on the screen that begin with a command.
func linesOf(out *screen, command string) (lines []string) {
	for line := range strings.Lines(out.String()) {
		if line = strings.TrimSpace(line); strings.HasPrefix(strings.TrimPrefix(line, "time "), command+" ") {
			lines = append(lines, line)
		}
	}
	return lines
}

// A try is lines for a shell, and what they print.
type try struct {
	name  string
	lines []string
	want  []string
	twice *regexp.Regexp // if not nil, what is printed two times, and is the same both times
}

func (try try) run(t *testing.T) {
	t.Parallel()
	shell := exec.CommandContext(t.Context(), "bash", "-c", strings.Join(try.lines, "\n"))
	printed, err := shell.CombinedOutput()
	if err != nil && !strings.Contains(string(printed), "Aborted") { // a refused call is an error to grpcurl
		t.Error(err)
	}
	for _, want := range try.want {
		if !strings.Contains(string(printed), want) {
			t.Errorf("%s is missing in\n%s", want, printed)
		}
	}
	if try.twice == nil {
		return
	}
	if found := try.twice.FindAll(printed, -1); len(found) != 2 || !bytes.Equal(found[0], found[1]) {
		t.Errorf("not the same twice: %q in\n%s", found, printed)
	}
}

func needs(t *testing.T, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
}

func TestCurlLinesWorkAsPrinted(t *testing.T) {
	t.Parallel()
	needs(t, "bash", "curl")
	urls, out, stop := startServing(t)
	t.Cleanup(func() { stop() })
	lines := linesOf(out, "curl")
	if len(lines) != 8 {
		t.Fatalf("%d lines of curl\n%s", len(lines), out)
	}
	for _, url := range urls {
		to := []string{"url=" + url}
		for _, try := range []try{
			{
				name: "transfers", lines: slices.Concat(to, lines[:4]),
				want: []string{`"cents":9400}`, "409 Conflict", "Retry-After: 1", `"code":"busy"`, `"cents":8900}`},
			},
			{
				name: "orders", lines: slices.Concat(to, lines[4:6]),
				want: []string{`{"number":1}`, `{"number":2}`, "after 2."},
			},
			{
				name: "payments", lines: slices.Concat(to, lines[6:]),
				want:  []string{"Idempotent-Replayed: true"},
				twice: regexp.MustCompile(`{"number":[0-9]+,"at":".*","cents":9500}`),
			},
		} {
			t.Run(try.name+" at "+url, try.run)
		}
	}
}

func TestGrpcurlLinesWorkAsPrinted(t *testing.T) {
	t.Parallel()
	needs(t, "bash", "grpcurl")
	_, out, stop := startServing(t)
	t.Cleanup(func() { stop() })
	lines := linesOf(out, "grpcurl")
	if len(lines) != 8 {
		t.Fatalf("%d lines of grpcurl\n%s", len(lines), out)
	}
	var to []string
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "    addr=") {
			to = append(to, line)
		}
	}
	for _, try := range []try{
		{
			name: "transfers", lines: slices.Concat(to, lines[:4]),
			want: []string{`"cents": "9400"`, "Code: Aborted", "RetryInfo", "BUSY", `"cents": "8900"`},
		},
		{
			name: "orders", lines: slices.Concat(to, lines[4:6]),
			want: []string{`"number": "1"`, `"number": "2"`, "real\t0m2."},
		},
		{
			name: "payments", lines: slices.Concat(to, lines[6:]),
			want:  []string{"idempotent-replayed: true", `"cents": "9500"`},
			twice: regexp.MustCompile("transfer-at: .*"),
		},
	} {
		t.Run(try.name, try.run)
	}
}

//faults:row 41: a whole service
func TestRequestsUnderWayMayEnd(t *testing.T) {
	t.Parallel()
	urls, out, stop := startServing(t)
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
	// A second order of the user is in the way once the first one has its lock.
	await(t, "the first order has its lock", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err := client.order(ctx, "ann", "milk")
		return err != nil
	})
	if code := stop(); code != exitRight {
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
