package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/redistest"
	"github.com/reqlock/reqlock/nethttplock"
)

// A screen is what a program under test writes. It is safe for concurrent use.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// newProgram returns a program as main makes it, but that the service may be
// changed and what is written is kept.
func newProgram(redisURL string, change func(*service, *core.Locker)) (program, *screen) {
	out := new(screen)
	return program{
		out:      out,
		errs:     out,
		redisURL: redisURL,
		addr:     "127.0.0.1:0",
		parts:    allParts(),
		handler: func(bank *bank, locks *core.Locker) http.Handler {
			s := newService(bank, locks)
			if change != nil {
				change(s, locks)
			}
			return s.handler()
		},
	}, out
}

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

func TestAllPartsGoAsExpected(t *testing.T) {
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		p, out := newProgram("", nil)
		if code := p.run(t.Context()); code != exitRight {
			t.Errorf("exit code %d", code)
		}
		if got := marks(out.String()); got != "✓✓✓✓✓" {
			t.Errorf("%s\n%s", got, out)
		}
		if !strings.Contains(out.String(), "Redis:   embedded") {
			t.Errorf("the program does not say that it embeds a Redis:\n%s", out)
		}
	})
	t.Run("two at once on a real one", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t)
		var runs sync.WaitGroup
		for range 2 {
			runs.Go(func() {
				p, out := newProgram("redis://"+server.Addr()+"/3", nil)
				if code := p.run(t.Context()); code != exitRight {
					t.Errorf("exit code %d", code)
				}
				if got := marks(out.String()); got != "✓✓✓✓✓" {
					t.Errorf("%s\n%s", got, out)
				}
			})
		}
		runs.Wait()
		client := server.Client(t, func(o *redis.Options) { o.DB = 3 })
		if left, err := client.Keys(t.Context(), "*").Result(); err != nil || len(left) > 0 {
			t.Errorf("keys left behind: %q, %v", left, err)
		}
	})
}

// TestBrokenServiceIsReported breaks the locks of the service in each way that
// a part is there to see. Where the crash makes no difference it is left out.
func TestBrokenServiceIsReported(t *testing.T) {
	unlocked := func(next http.Handler) http.Handler { return next }
	tests := []struct {
		name   string
		change func(*service, *core.Locker)
		marks  string
	}{
		{
			"no lock at all",
			func(s *service, _ *core.Locker) { s.account, s.inTurn, s.user = unlocked, unlocked, unlocked },
			"✗✗✓✗✗",
		},
		{"no lock on transfers", func(s *service, _ *core.Locker) { s.account = unlocked }, "✗✓✓✓"},
		{"transfers wait", func(s *service, _ *core.Locker) { s.account = s.inTurn }, "✗✓✓✓"},
		{"no lock on settlements", func(s *service, _ *core.Locker) { s.inTurn = unlocked }, "✓✓✓✗✗"},
		{"settlements do not wait", func(s *service, _ *core.Locker) { s.inTurn = s.account }, "✓✓✓✗✗"},
		{
			"settlements lock the payer alone",
			func(s *service, locks *core.Locker) {
				s.inTurn = nethttplock.Middleware(
					locks.With(core.WithWait(longest)),
					core.Named("account", nethttplock.PathValue("id")),
				)
			},
			"✓✓✓✗",
		},
		{"no lock on users", func(s *service, _ *core.Locker) { s.user = unlocked }, "✓✗✓✓"},
		{
			"all users have one lock",
			func(s *service, locks *core.Locker) {
				s.user = nethttplock.Middleware(locks.With(core.WithWait(longest)), nethttplock.Literal("user"))
			},
			"✓✓✗✓",
		},
		{
			"another name for the key",
			func(s *service, locks *core.Locker) {
				s.inTurn = nethttplock.Middleware(locks.With(core.WithWait(longest)), nethttplock.PathValue("id"),
					nethttplock.Also(nethttplock.JSONField("to")))
			},
			"✓✓✓✓✗",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p, out := newProgram("", test.change)
			p.parts = p.parts[:utf8.RuneCountInString(test.marks)]
			if code := p.run(t.Context()); code != exitWrong {
				t.Errorf("exit code %d", code)
			}
			if got := marks(out.String()); got != test.marks {
				t.Errorf("%s, not %s\n%s", got, test.marks, out)
			}
			if !strings.Contains(out.String(), " went wrong.") {
				t.Errorf("the closing line does not say so:\n%s", out)
			}
		})
	}
}

func TestCannotBegin(t *testing.T) {
	tests := []struct{ name, url, message string }{
		{"no Redis", "redis://127.0.0.1:1", "127.0.0.1:1, cannot be used: "},
		{"another scheme", "http://127.0.0.1", "REDIS_URL is not the URL of a Redis"},
		{"no URL", "redis://user:secret@127.0.0.1:port", "REDIS_URL is not the URL of a Redis"},
		{"bad database", "redis://:secret@127.0.0.1/three", "REDIS_URL is not the URL of a Redis"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p, out := newProgram(test.url, nil)
			if code := p.run(t.Context()); code != exitCannotBegin {
				t.Errorf("exit code %d", code)
			}
			if !strings.Contains(out.String(), test.message) || strings.Contains(out.String(), "secret") {
				t.Errorf("message: %s", out)
			}
		})
	}
	t.Run("address in use", func(t *testing.T) {
		s, err := serve(t.Context(), "127.0.0.1:0", http.NotFoundHandler())
		if err != nil {
			t.Fatal(err)
		}
		p, out := newProgram("", nil)
		p.addr = strings.TrimPrefix(s.URL, "http://")
		if code := p.run(t.Context()); code != exitCannotBegin {
			t.Errorf("exit code %d\n%s", code, out)
		}
		if err := s.stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var locks *core.Locker
	p, out := newProgram("", func(s *service, l *core.Locker) {
		locks = l
		s.user = func(http.Handler) http.Handler {
			return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { cancel() })
		}
	})
	if code := p.run(ctx); code != exitWrong {
		t.Errorf("exit code %d", code)
	}
	if _, err := locks.TryLock(context.Background(), "key"); !errors.Is(err, core.ErrClosed) {
		t.Errorf("the locks were not closed: %v", err)
	}
	if got := marks(out.String()); got != "✓" || !strings.Contains(out.String(), "interrupted") {
		t.Errorf("%s\n%s", got, out)
	}
}
