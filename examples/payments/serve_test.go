package main

import (
	"context"
	"net/http"
	"os/exec"
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

// startServing runs the program with -serve, and returns the URL of the
// service, what is on the screen, and the function that ends the run.
func startServing(t *testing.T) (url string, out *screen, stop func() (code int)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	p, out := newProgram("", nil)
	p.serve, p.parts = true, p.parts[:1]
	done := make(chan int, 1)
	go func() { done <- p.run(ctx) }()
	await(t, "the service is up", func() bool { return strings.Contains(out.String(), "stays up at ") })
	_, url, _ = strings.Cut(out.String(), "stays up at ")
	url, _, _ = strings.Cut(url, " ")
	return url, out, func() int {
		cancel()
		return <-done
	}
}

func TestCurlLinesWorkAsPrinted(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"sh", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	_, out, stop := startServing(t)
	t.Cleanup(func() { stop() })
	var lines []string
	for line := range strings.Lines(out.String()) {
		if line, ok := strings.CutPrefix(line, "    curl "); ok {
			lines = append(lines, "curl -sS "+strings.TrimSpace(line))
		}
	}
	if len(lines) != 6 {
		t.Fatalf("%d lines of curl\n%s", len(lines), out)
	}
	tests := []struct {
		name  string
		lines []string
		want  []string
	}{
		{
			"transfers", lines[:4],
			[]string{`{"cents":9400}`, "409 Conflict", "Retry-After: 1", `"code":"busy"`, `{"cents":8900}`},
		},
		{"orders", lines[4:], []string{`{"number":1}`, `{"number":2}`, "after 2."}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			shell := exec.CommandContext(t.Context(), "sh", "-c", strings.Join(test.lines, "\n"))
			printed, err := shell.CombinedOutput()
			if err != nil {
				t.Error(err)
			}
			for _, want := range test.want {
				if !strings.Contains(string(printed), want) {
					t.Errorf("%s is missing in\n%s", want, printed)
				}
			}
		})
	}
}

func TestRequestsUnderWayMayEnd(t *testing.T) {
	t.Parallel()
	url, out, stop := startServing(t)
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
