package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// An outputBuffer keeps the output of a program. It is safe for concurrent use.
type outputBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *outputBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *outputBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// newProgram returns a program like that of main, with the given frameworks, or all
// of them, and with its output in a buffer.
func newProgram(redisURL string, frameworks ...framework) (program, *outputBuffer) {
	if len(frameworks) == 0 {
		frameworks = allFrameworks()
	}
	out := new(outputBuffer)
	return program{
		out:        out,
		errs:       out,
		redisURL:   redisURL,
		addr:       "127.0.0.1:0",
		frameworks: frameworks,
		scenarios:  allScenarios,
	}, out
}

// firstScenarios returns a function that returns the first n scenarios.
func firstScenarios(n int) func(protocol) []scenario {
	return func(w protocol) []scenario { return allScenarios(w)[:n] }
}

// allRight is the result of marks if all scenarios of all frameworks succeed.
var allRight = strings.Repeat("✓", 4*13)

// marks returns the ticks and crosses of a table, as in "✓✓✗✓".
func marks(table string) string {
	var all strings.Builder
	for line := range strings.Lines(table) {
		for _, mark := range []string{"✓", "✗"} {
			if strings.HasPrefix(line, mark) {
				all.WriteString(mark)
			}
		}
	}
	return all.String()
}

func TestAllScenariosGoAsExpected(t *testing.T) {
	t.Parallel()
	p, out := newProgram("")
	if code := p.run(t.Context()); code != exitExpected {
		t.Errorf("exit code %d", code)
	}
	if got := marks(out.String()); got != allRight {
		t.Errorf("%s\n%s", got, out)
	}
	if !strings.Contains(out.String(), "All 52 went as expected") {
		t.Errorf("the closing line does not say so:\n%s", out)
	}
	if !strings.Contains(out.String(), "Redis: embedded") {
		t.Errorf("the program does not say that it embeds a Redis:\n%s", out)
	}
}

func TestTwoProgramsShareARedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	all := allFrameworks()
	shared := []framework{all[0], all[3]} // one for each protocol
	var runs sync.WaitGroup
	for range 2 {
		runs.Go(func() {
			p, out := newProgram("redis://"+server.Addr()+"/3", shared...)
			if code := p.run(t.Context()); code != exitExpected {
				t.Errorf("exit code %d", code)
			}
			if got := marks(out.String()); got != allRight[:len(allRight)/2] {
				t.Errorf("%s\n%s", got, out)
			}
		})
	}
	runs.Wait()
	client := server.Client(t, func(o *redis.Options) { o.DB = 3 })
	left, err := client.Keys(t.Context(), "*").Result()
	if err != nil || len(left) != 2*6*len(shared) { // six payments in each
		t.Errorf("left behind is more than the records of payments: %q, %v", left, err)
	}
	for _, key := range left {
		lives, err := client.PTTL(t.Context(), key).Result()
		if err != nil || lives <= 0 || lives > retention {
			t.Errorf("%s lives for another %v, %v", key, lives, err)
		}
	}
}

func TestExitCodeIfTheProgramCannotStart(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, url, message string }{
		{"no Redis", "redis://127.0.0.1:1", "127.0.0.1:1, cannot be used: "},
		{"another scheme", "http://127.0.0.1", "REDIS_URL is not the URL of a Redis"},
		{"no URL", "redis://user:secret@127.0.0.1:port", "REDIS_URL is not the URL of a Redis"},
		{"bad database", "redis://:secret@127.0.0.1/three", "REDIS_URL is not the URL of a Redis"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p, out := newProgram(test.url)
			if code := p.run(t.Context()); code != exitCannotStart {
				t.Errorf("exit code %d", code)
			}
			if !strings.Contains(out.String(), test.message) || strings.Contains(out.String(), "secret") {
				t.Errorf("message: %s", out)
			}
		})
	}
	t.Run("address in use", func(t *testing.T) {
		s, err := serveHTTP(t.Context(), "127.0.0.1:0", http.NotFoundHandler())
		if err != nil {
			t.Fatal(err)
		}
		for _, on := range allFrameworks() {
			p, out := newProgram("", on)
			p.addr = s.Addr
			if code := p.run(t.Context()); code != exitCannotStart || !strings.Contains(out.String(), on.Name+": cannot listen") {
				t.Errorf("exit code %d\n%s", code, out)
			}
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestInterruptClosesTheLocks(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var locks *core.Locker
	p, out := newProgram("", onHTTP("net/http", func(b *bank, l *core.Locker) http.Handler {
		locks = l
		s := newNetHTTPService(b, l)
		s.user = func(http.Handler) http.Handler {
			return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { cancel() })
		}
		return s.handler()
	}))
	if code := p.run(ctx); code != exitUnexpected {
		t.Errorf("exit code %d", code)
	}
	if _, err := locks.TryLock(context.Background(), "key"); !errors.Is(err, core.ErrClosed) {
		t.Errorf("the locks were not closed: %v", err)
	}
	if got := marks(out.String()); strings.Contains(got, "✗") || !strings.Contains(out.String(), "interrupted") {
		t.Errorf("%s\n%s", got, out)
	}
}

func TestNthAddr(t *testing.T) {
	t.Parallel()
	tests := []struct {
		first string
		n     int
		want  string
	}{
		{"127.0.0.1:0", 3, "127.0.0.1:0"},
		{"127.0.0.1:8080", 0, "127.0.0.1:8080"},
		{"[::1]:8080", 3, "[::1]:8083"},
		{":8080", 1, ":8081"},
		{"localhost:http", 0, ""},
		{"localhost", 0, ""},
	}
	for _, test := range tests {
		got, err := nthAddr(test.first, test.n)
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%d after %s: %q, %v", test.n, test.first, got, err)
		}
	}
}
