package core_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// warnings returns the lines of the log that WithLogger writes.
func (b *logBuffer) warnings() (lines []string) {
	for line := range strings.Lines(b.String()) {
		if strings.Contains(line, "level=WARN") {
			lines = append(lines, line)
		}
	}
	return lines
}

// newLogged returns a Locker whose warnings are logged, and which has no observer.
func newLogged(t *testing.T, rdb redis.UniversalClient, log *logBuffer, opts ...core.Option) *core.Locker {
	t.Helper()
	return newLocker(t, rdb, append(opts, core.WithLogger(log.logger()))...)
}

// However many requests an outage refuses, and whatever they want, it has one line when it begins, with
// what to do, and one when it ends.
func TestOutageHasTwoLines(t *testing.T) {
	t.Parallel()
	server, log := redistest.Start(t), &logBuffer{}
	locks := newLogged(t, server.Client(t, deadlines), log, core.WithCommandTimeout(time.Second))
	attempt := begin(t, locks, "payment")
	held := lock(t, locks, "held")
	server.Kill()
	waits := make(chan error)
	go func() { waits <- locks.Do(t.Context(), "waits", func(context.Context) error { return nil }) }()
	suite.Eventually(t, "the outage is logged", func() bool { return len(log.warnings()) > 0 })
	refused := make(chan error)
	for range 4 {
		go func() { refused <- errorOf(locks.TryLock(t.Context(), "k")) }()
		go func() { refused <- errorOf(locks.Begin(t.Context(), "i", nil)) }()
	}
	for range 8 {
		wantError(t, <-refused, core.ErrUnavailable)
	}
	open := locks.With(core.WithFailOpen(true), core.WithWait(1500*time.Millisecond)) // longer than a command
	noError(t, open.Do(t.Context(), "k", func(context.Context) error { return nil }))
	_ = held.Release(t.Context())
	wantError(t, attempt.Commit(t.Context(), []byte("done")), core.ErrUnavailable)
	server.Restart()
	noError(t, <-waits)
	suite.Eventually(t, "the end is logged", func() bool { return strings.Contains(log.String(), "is over") })
	lines := map[string]string{}
	for _, line := range log.warnings() {
		_, message, _ := strings.Cut(line, `msg="`)
		message, _, _ = strings.Cut(message, `"`)
		if lines[message] != "" {
			t.Errorf("twice: %s", line)
		}
		lines[message] = line
	}
	delete(lines, "lock restored") // it comes only if the reply to the commit was not lost
	for message, want := range map[string][]string{
		"redis outage began":   {"server=" + server.Addr(), "address"},
		"redis outage is over": {"server=" + server.Addr(), "lasted=", "refused=8 unlocked=1"},
		"lock outcome_unknown": {"idempotent=true", "the commit has failed so far, and goes on"},
		"lock committed late":  {"idempotent=true"},
	} {
		for _, part := range want {
			if !strings.Contains(lines[message], part) {
				t.Errorf("%q lacks %q: %s", message, part, lines[message])
			}
		}
		delete(lines, message)
	}
	if len(lines) != 0 {
		t.Errorf("more lines: %v", lines)
	}
}

// The line says what to write for the mistakes of a new program.
func TestOutageSaysWhatToDo(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--requirepass", "secret")
	for want, options := range map[string]*redis.Options{
		"redis requires a password: set Password":                  {Addr: server.Addr()},
		"redis refuses the user or the password":                   {Addr: server.Addr(), Password: "wrong"},
		"redis cannot be reached (dial tcp 127.0.0.1:1: connect: ": {Addr: "127.0.0.1:1"},
		"requests with WithFailOpen run without their locks":       {Addr: "127.0.0.1:1"},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			rdb, log := redis.NewClient(options), &logBuffer{}
			t.Cleanup(func() { _ = rdb.Close() })
			locks := newLogged(t, rdb, log, core.WithFailOpen(true), core.WithWait(time.Second))
			noError(t, locks.Do(t.Context(), "k", func(context.Context) error { return nil }))
			suite.Eventually(t, "the line of the outage", func() bool { return strings.Contains(log.String(), want) })
			if strings.Contains(log.String(), "wrong") {
				t.Errorf("logged the password: %s", log.String())
			}
		})
	}
}

// hasProcess matches a line with the id of the process.
var hasProcess = regexp.MustCompile(` process=[0-9a-f]{32}\b`)

// A fault that is no outage, such as a key of another type, has a line, and not one for each request.
func TestFaultOfOneKeyIsLoggedOnce(t *testing.T) {
	t.Parallel()
	rdb, log := redistest.Reuse(t).Client(t), &logBuffer{}
	noError(t, rdb.RPush(t.Context(), "reqlock:k", "theirs").Err())
	locks := newLogged(t, rdb, log)
	for range 20 {
		wantError(t, errorOf(locks.TryLock(t.Context(), "k")), core.ErrUnavailable)
	}
	if lines := log.warnings(); len(lines) != 1 || !strings.Contains(lines[0], "WRONGTYPE") || !hasProcess.MatchString(lines[0]) {
		t.Errorf("logged %s", lines)
	}
}

// slog.Default is the logger if none is set, at the time of the event. An observer changes nothing, and
// WithLogger(nil) silences.
func TestDefaultLogger(t *testing.T) { //nolint:paralleltest // slog.Default belongs to the process
	for name, test := range map[string]struct {
		opts  []core.Option
		lines int
	}{
		"no option":   {nil, 1},
		"an observer": {[]core.Option{core.WithObserver(func(core.Event) {})}, 1},
		"nil":         {[]core.Option{core.WithLogger(nil)}, 0},
	} {
		locks := newLocker(t, newEmbedded(t), withoutResend(test.opts...)...)
		log := &logBuffer{}
		restore := log.beDefault()
		noError(t, begin(t, locks, "k").Unknown(t.Context(), errors.New("the bank did not answer")))
		restore()
		if lines := log.warnings(); len(lines) != test.lines {
			t.Errorf("%s: %v", name, lines)
		}
	}
}

// Without an observer, nothing is built for a lock that is taken and released, nor for one that waits.
func TestLogCostsALockNothing(t *testing.T) {
	if suite.Race {
		t.Skip("the race detector drops what pools keep")
	}
	rdb := redistest.Reuse(t).Client(t, deadlines)
	allocations := func(opts ...core.Option) (free, busy float64) {
		locks := newLocker(t, rdb, opts...)
		free = testing.AllocsPerRun(200, func() { release(t, lock(t, locks, "k")) })
		defer release(t, lock(t, locks, "k"))
		return free, testing.AllocsPerRun(200, func() { _, _ = locks.TryLock(context.Background(), "k") })
	}
	silent, silentBusy := allocations(core.WithLogger(nil))
	if free, busy := allocations(); free > silent || busy > silentBusy {
		t.Errorf("%v and %v allocations with a logger, %v and %v without", free, busy, silent, silentBusy)
	}
}

// A server of a quorum that is down has its lines, although no request is refused.
func TestOutageOfOneServerOfAQuorum(t *testing.T) {
	t.Parallel()
	log, servers := &logBuffer{}, startServers(t, 3)
	locks := newQuorum(t, clientsOf(t, servers), core.WithLogger(log.logger()), core.WithTTL(2*time.Second), core.WithCommandTimeout(time.Second))
	release(t, lock(t, locks, "k"))
	servers[1].Kill()
	suite.Eventually(t, "the outage is logged", func() bool {
		release(t, lock(t, locks, "k"))
		return strings.Contains(log.String(), `msg="redis outage began" server=`+servers[1].Addr())
	})
}
