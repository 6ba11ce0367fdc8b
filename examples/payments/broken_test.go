package main

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/labstack/echo/v4"
	"google.golang.org/grpc"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/nethttplock"
)

// The frameworks, with changed services.

func changedNetHTTP(change func(*nethttpService, *core.Locker)) framework {
	return onHTTP("net/http", func(b *bank, l *core.Locker) http.Handler {
		s := newNetHTTPService(b, l)
		change(s, l)
		return s.handler()
	})
}

func changedGin(change func(*ginService)) framework {
	return onHTTP("Gin", func(b *bank, l *core.Locker) http.Handler {
		s := newGinService(b, l)
		change(s)
		return s.handler()
	})
}

func changedEcho(change func(*echoService)) framework {
	return onHTTP("Echo", func(b *bank, l *core.Locker) http.Handler {
		s := newEchoService(b, l)
		change(s)
		return s.handler()
	})
}

func changedGRPC(change func(*grpcService)) framework {
	return onGRPC("gRPC", func(b *bank, l *core.Locker) *grpc.Server {
		s := newGRPCService(b, l)
		change(s)
		return s.server()
	})
}

// Middlewares without a lock.

func unlocked(next http.Handler) http.Handler { return next }

func unlockedGin(*gin.Context) {}

func unlockedEcho(next echo.HandlerFunc) echo.HandlerFunc { return next }

func unlockedCall(ctx context.Context, m any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	return next(ctx, m)
}

// leftOut stands in marks for a scenario that does not run.
const leftOut = '-'

// expectMarks runs scenarios on one broken framework, and compares their marks. Scenario
// 4 is the longest: it is left out if the broken lock does not affect it. In scenario 6 no
// broken lock waits, so its TTL may be long: a busy machine must not reach the end of it.
func expectMarks(t *testing.T, on framework, want string) {
	t.Helper()
	p, out := newProgram("", on)
	p.scenarios = func(of protocol) (chosen []scenario) {
		for i, mark := range []rune(want) {
			if mark == leftOut {
				continue
			}
			one := allScenarios(of)[i]
			if i == 5 {
				one.Run = afterCrash(time.Minute)
			}
			chosen = append(chosen, one)
		}
		return chosen
	}
	if code := p.run(t.Context()); code != exitUnexpected {
		t.Errorf("exit code %d", code)
	}
	want = strings.ReplaceAll(want, string(leftOut), "")
	if got := marks(out.String()); got != want {
		t.Errorf("%s, not %s\n%s", got, want, out)
	}
	if !strings.Contains(out.String(), " went wrong.") {
		t.Errorf("the closing line does not report the failure:\n%s", out)
	}
}

// TestLockLeftOutIsReported removes locks from the service of each framework. The fast tier
// has one framework for each row. The crash scenario is left out if the change does not
// affect it.
func TestLockLeftOutIsReported(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name                      string
		account, turn, user, once bool // left out
		reads, batch              bool // left out
		marks                     string
	}{
		{"no lock at all", true, true, true, true, true, true, "✗✗✓-✗✗✗✗"},
		{"no lock on transfers", true, false, false, false, false, false, "✗✓✓-✓"},
		{"no lock on settlements", false, true, false, false, false, false, "✓✓✓✗✓✗✓✗"},
		{"no lock on users", false, false, true, false, false, false, "✓✗✓-✓"},
		{"nothing that makes a payment one", false, false, false, true, false, false, "✓✓✓-✗"},
		{"no lock on reads", false, false, false, false, true, false, "✓-----✓✗"},
		{"no permits on settlements", false, false, false, false, false, true, "✓-----✗✓"},
	}
	for row, test := range tests {
		frameworks := []framework{
			changedNetHTTP(func(s *nethttpService, _ *core.Locker) {
				leaveOut(test.account, &s.account, unlocked)
				leaveOut(test.turn, &s.inTurn, unlocked)
				leaveOut(test.user, &s.user, unlocked)
				leaveOut(test.once, &s.once, unlocked)
				leaveOut(test.reads, &s.reads, unlocked)
				leaveOut(test.batch, &s.batch, unlocked)
			}),
			changedGin(func(s *ginService) {
				leaveOut(test.account, &s.account, unlockedGin)
				leaveOut(test.turn, &s.inTurn, unlockedGin)
				leaveOut(test.user, &s.user, unlockedGin)
				leaveOut(test.once, &s.once, unlockedGin)
				leaveOut(test.reads, &s.reads, unlockedGin)
				leaveOut(test.batch, &s.batch, unlockedGin)
			}),
			changedEcho(func(s *echoService) {
				leaveOut(test.account, &s.account, unlockedEcho)
				leaveOut(test.turn, &s.inTurn, unlockedEcho)
				leaveOut(test.user, &s.user, unlockedEcho)
				leaveOut(test.once, &s.once, unlockedEcho)
				leaveOut(test.reads, &s.reads, unlockedEcho)
				leaveOut(test.batch, &s.batch, unlockedEcho)
			}),
			changedGRPC(func(s *grpcService) {
				leaveOut(test.account, &s.account, unlockedCall)
				leaveOut(test.turn, &s.inTurn, unlockedCall)
				leaveOut(test.user, &s.user, unlockedCall)
				leaveOut(test.once, &s.once, unlockedCall)
				leaveOut(test.reads, &s.reads, unlockedCall)
				leaveOut(test.batch, &s.batch, unlockedCall)
			}),
		}
		for i, on := range frameworks {
			t.Run(test.name+" on "+on.Name, func(t *testing.T) {
				if row%len(frameworks) != i {
					suite.Full(t, "is one of all combinations of a lock and a framework")
				}
				t.Parallel()
				expectMarks(t, on, test.marks)
			})
		}
	}
}

// leaveOut replaces a lock if it is to be left out.
func leaveOut[Lock any](it bool, lock *Lock, instead Lock) {
	if it {
		*lock = instead
	}
}

// TestWrongLockIsReported changes a lock of the service, in each way that a scenario
// detects.
func TestWrongLockIsReported(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*nethttpService, *core.Locker)
		marks  string
	}{
		{"transfers wait", func(s *nethttpService, _ *core.Locker) { s.account = s.inTurn }, "✗✓✓"},
		{"settlements do not wait", func(s *nethttpService, _ *core.Locker) { s.inTurn = s.account }, "✓✓✓✗✓✗"},
		{
			"settlements lock the payer alone",
			func(s *nethttpService, locks *core.Locker) {
				s.inTurn = nethttplock.Middleware(
					locks.With(core.WithWait(longest)),
					core.Named("account", nethttplock.PathValue("id")),
				)
			},
			"✓✓✓✗",
		},
		{
			"all users have one lock",
			func(s *nethttpService, locks *core.Locker) {
				s.user = nethttplock.Middleware(locks.With(core.WithWait(longest)), nethttplock.Literal("user"))
			},
			"✓✓✗",
		},
		{
			"readers have the key alone",
			func(s *nethttpService, locks *core.Locker) {
				s.reads = nethttplock.Middleware(locks, core.Named("account", nethttplock.PathValue("id")), core.WithWait(2*time.Second))
			},
			"------✓✗",
		},
		{
			"another number of permits",
			func(s *nethttpService, locks *core.Locker) {
				s.batch = nethttplock.Middleware(locks, core.Permits(4, nethttplock.Literal("batch")), core.WithWait(longest))
			},
			"------✗✓",
		},
		{
			"another name for the key",
			func(s *nethttpService, locks *core.Locker) {
				s.inTurn = nethttplock.Middleware(locks.With(core.WithWait(longest)), nethttplock.PathValue("id"),
					nethttplock.Also(nethttplock.JSONField("to")))
			},
			"✓✓✓-✓✗",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			expectMarks(t, changedNetHTTP(test.change), test.marks)
		})
	}
	t.Run("one of four", func(t *testing.T) {
		t.Parallel()
		frameworks := allFrameworks()
		frameworks[2] = changedEcho(func(s *echoService) { s.user = unlockedEcho })
		p, out := newProgram("", frameworks...)
		p.scenarios = firstScenarios(2)
		if code, got := p.run(t.Context()), marks(out.String()); code != exitUnexpected || got != "✓✓✓✓✓✗✓✓" {
			t.Errorf("exit code %d, %s\n%s", code, got, out)
		}
	})
}
