package conformance

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A refusal is a lock, and what happens before the request, so that the request does not run.
// The answer is the row of core.RefusalOf for the error.
type refusal struct {
	name    string
	needs   feature
	lock    lock
	request request // without keys: plain
	prepare func(e *environment)
	outer   func(e *environment) func(frame)
	want    error
	part    string // in the answer, of what the client can mend
	warned  string // in the only warning; "": there is none
}

// refusalCases are all rows of the table of refusals that can occur.
func refusalCases() []testCase {
	var cases []testCase
	for _, r := range refusals() {
		cases = append(cases, testCase{r.name, r.needs, r.run})
	}
	return append(cases, []testCase{
		{"key error with its own status", everywhere, keyErrorWithStatus},
	}...)
}

func refusals() []refusal {
	header := []key{byHeader}
	taken := func(e *environment) { e.take(theKey) }
	down := func(e *environment) { e.proxy.Refuse(true) }
	return []refusal{
		{
			name:    "busy",
			lock:    lock{keys: header, options: []core.Option{core.WithRetryAfter(1500 * time.Millisecond)}},
			prepare: taken,
			want:    refused(core.ErrBusy, 1500*time.Millisecond),
		},
		{
			name:    "wait_timeout",
			lock:    lock{keys: header, options: []core.Option{core.WithWait(shortWait)}},
			prepare: taken,
			want:    refused(core.ErrWaitTimeout, time.Second),
		},
		{
			name: "no_key: it is missing", lock: lock{keys: []key{{header: "x-other"}}},
			want: refused(core.ErrNoKey, 0), part: "x-other",
		},
		{
			name: "no_key: it is empty", lock: lock{keys: []key{given("", nil)}},
			want: refused(core.ErrNoKey, 0), warned: "refuses requests, because it returns an empty key: let it read",
		},
		{
			name: "no_key: the application says so", lock: lock{keys: []key{given("", core.ErrNoKey)}},
			want: refused(core.ErrNoKey, 0),
		},
		{
			name: "invalid_key: given twice", lock: lock{keys: header},
			request: request{keys: []string{theKey, theKey}},
			want:    refused(core.ErrInvalidKey, 0), part: "x-key",
		},
		{
			name: "invalid_key: the lock's name is too long", lock: lock{keys: []key{given(strings.Repeat(theKey, 400), nil)}},
			want: refused(core.ErrInvalidKey, 0),
		},
		{
			name: "no_key: no idempotency key", lock: lock{keys: []key{byUser}},
			want: refused(core.ErrNoKey, 0), part: "the ",
		},
		{
			name: "invalid_key: the idempotency key is malformed", lock: lock{keys: []key{byUser}},
			request: request{idempotencyKeys: []string{`"` + theKey}, second: secondKey},
			want:    refused(core.ErrInvalidKey, 0), part: "idempotency-key",
		},
		{
			name: "body_too_large", needs: bodyLimits, lock: lock{keys: []key{byBody}, options: []core.Option{core.WithMaxBody(8)}},
			want: refused(core.ErrBodyTooLarge, 0),
		},
		{
			name: "key_error", lock: lock{keys: []key{given("", errors.New(theKey))}},
			want: keyError(), warned: "refuses requests with key_error, because it fails with an error of its own",
		},
		{
			name: "unavailable: connections are refused", lock: lock{keys: header}, prepare: down,
			want: refused(core.ErrUnavailable, time.Second),
		},
		{
			name: "closing", lock: lock{keys: header},
			prepare: closeLocker,
			want:    refused(core.ErrClosed, time.Second),
		},
		{
			name:    "closing, while it waits",
			lock:    lock{keys: header, options: []core.Option{core.WithWait(time.Minute)}},
			prepare: taken,
			outer: func(e *environment) func(frame) {
				return func(f frame) { whileItWaits(e, f, func() { closeLocker(e) }) }
			},
			want: refused(core.ErrClosed, time.Second),
		},
		{
			name:    "deadline",
			lock:    lock{keys: header, options: []core.Option{core.WithWait(time.Minute)}},
			prepare: taken,
			outer: func(*environment) func(frame) {
				return func(f frame) {
					ctx, cancel := context.WithTimeout(f.Context(), 50*time.Millisecond)
					defer cancel()
					f.SetContext(ctx)
					f.Next()
				}
			},
			want: ended(context.DeadlineExceeded),
		},
		{
			name:    "canceled",
			lock:    lock{keys: header, options: []core.Option{core.WithWait(time.Minute)}},
			prepare: taken,
			outer: func(e *environment) func(frame) {
				return func(f frame) {
					ctx, cancel := context.WithCancel(f.Context())
					f.SetContext(ctx)
					whileItWaits(e, f, cancel)
				}
			},
			want: ended(context.Canceled),
		},
	}
}

func (r refusal) run(e *environment) {
	served := route{locks: []lock{r.lock}}
	if r.outer != nil {
		served.outer = r.outer(e)
	}
	s := e.serve(served)
	if r.prepare != nil {
		r.prepare(e)
	}
	sent := r.request
	if sent.keys == nil && sent.idempotencyKeys == nil {
		sent = plain
	}
	got := s.wantRefusal(sent, e.rowOf(r.want))
	if !strings.Contains(strings.ToLower(got.raw), r.part) {
		e.Errorf("the answer does not name %q: %s", r.part, got.raw)
	}
	if n := len(e.events.await(e.T, core.Refused, 1)); n != 1 {
		e.Errorf("%d events of a refusal", n)
	}
	if got := e.events.count(core.Acquired); got != 0 {
		e.Errorf("%d leases for a request that did not run", got)
	}
	if r.warned != "" {
		s.wantRefusal(sent, e.rowOf(r.want))
		suite.Eventually(e.T, "there is a warning", func() bool { return e.warned(r.warned) })
	}
	warned, _ := e.events.of(core.Warned)
	found := 0
	for _, event := range warned {
		text := event.Err.Error()
		if !strings.Contains(text, " refuses requests") { // it is of a method without an interceptor
			continue
		}
		if found++; found > 1 || r.warned == "" || !strings.Contains(text, r.warned) || strings.Contains(text, theKey) {
			e.Errorf("warning %d, want one of %q: %s", found, r.warned, text)
		}
	}
}

// warned reports whether there is a warning with a text.
func (e *environment) warned(text string) bool {
	all, _ := e.events.of(core.Warned)
	return slices.ContainsFunc(all, func(event core.Event) bool { return strings.Contains(event.Err.Error(), text) })
}

// The error of a key may state the answer's status.
func keyErrorWithStatus(e *environment) {
	s := e.serve(route{locks: []lock{{keys: []key{given("", forbidden{})}}}})
	s.wantRefusal(plain, e.f.forbidden)
}

// whileItWaits calls Next, and calls do as soon as the request waits for its lock.
func whileItWaits(e *environment, f frame, do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.events.await(e.T, core.Waiting, 1)
		do()
	}()
	f.Next()
	<-done
}

// closeLocker closes the Locker of the case.
func closeLocker(e *environment) {
	if err := e.locks.Close(context.Background()); err != nil {
		e.Errorf("Close: %v", err)
	}
}

// refused returns the error of a request that does not get its lock.
func refused(kind error, retryAfter time.Duration) error {
	return &core.Error{Kind: kind, RetryAfter: retryAfter}
}

// keyError returns the error of a request whose key fails.
func keyError() error {
	fail := core.KeyOf(func(struct{}) (string, error) { return "", errors.New("any") })
	_, _, err := core.Enter(context.Background(), unusedLocker(), struct{}{}, fail)
	return err
}

// ended returns the error of a request whose context ended with err.
func ended(err error) error {
	ctx, cancel := context.WithDeadline(context.Background(), time.Unix(0, 0))
	if errors.Is(err, context.Canceled) {
		ctx, cancel = context.WithCancel(context.Background())
	}
	cancel()
	_, err = unusedLocker().TryLock(ctx, "any")
	return err
}

// unusedLocker returns a Locker for requests that do not reach Redis.
func unusedLocker() *core.Locker {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	_ = rdb.Close()
	return core.Must(core.New(rdb))
}

// The errors of the refusals match the rows of the table of refusals that they name.
func TestRefusalsAreTheRowsTheyName(t *testing.T) {
	t.Parallel()
	for _, r := range refusals() {
		name, _, _ := strings.Cut(r.name, ":")
		name, _, _ = strings.Cut(name, ",")
		if refusal, _ := core.RefusalOf(r.want); refusal.Code != name {
			t.Errorf("%q expects %q", r.name, refusal.Code)
		}
	}
}
