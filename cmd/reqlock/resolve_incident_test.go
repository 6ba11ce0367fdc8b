package main

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/nethttplock"
)

// A logBook is a log that a test reads while it is written.
type logBook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// field returns a field of the line with a message.
func (b *logBook) field(t *testing.T, message, name string) string {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	found := regexp.MustCompile(`msg="` + message + `".* ` + name + `=(\S+)`).FindStringSubmatch(b.text.String())
	if found == nil {
		t.Fatalf("the log has no %s of %s:\n%s", name, message, b.text.String())
	}
	return found[1]
}

// A bank is a service with a payment whose outcome is unknown, and the operator of the service.
type bank struct {
	operator

	locks *core.Locker
	log   *logBook
	pay   func() *httptest.ResponseRecorder
}

// bankPrefix is the prefix of the service.
const bankPrefix = "reqlock:bank:"

// run runs the command with the prefix of the service.
func (b *bank) run(t *testing.T, args ...string) result {
	t.Helper()
	return b.operator.run(t, append(args, "--prefix="+bankPrefix)...)
}

func newBank(t *testing.T) *bank {
	t.Helper()
	_, rdb, o := start(t)
	b := &bank{operator: o, log: &logBook{}}
	b.locks = newLocker(t, rdb, core.WithPrefix(bankPrefix), core.WithRetention(time.Hour), core.WithLogger(slog.New(slog.NewTextHandler(b.log, nil))))
	mux := http.NewServeMux()
	mux.Handle("POST /payments", nethttplock.Idempotent(b.locks, nethttplock.IdempotencyKey())(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })))
	b.pay = func() *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/payments", nil)
		r.Header.Set("Idempotency-Key", "8e03978e")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		return w
	}
	if got := b.pay(); got.Code != http.StatusBadGateway {
		t.Fatalf("the first payment: %d %s", got.Code, got.Body)
	}
	return b
}

// The whole incident of docs/unknown-outcomes.md: the line of the log, the list, the record, the resolution, and what
// a copy gets then.
func TestTheIncidentOfAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	for resolution, test := range map[string]struct {
		more   []string
		says   string
		state  string // afterwards; "": there is no record
		status int    // of a copy
		body   string
	}{
		"not_done": {status: http.StatusBadGateway},
		"done":     {state: "done", status: http.StatusConflict, body: `"code":"completed_unreplayable"`},
		"answered": {more: []string{"201", `{"id":7}`}, says: ", status 201, 8 bytes", state: "answered", status: http.StatusCreated, body: `{"id":7}`},
	} {
		t.Run(resolution, func(t *testing.T) {
			t.Parallel()
			b := newBank(t)
			key, digest := b.log.field(t, "lock outcome_unknown", "endpoint_key"), b.log.field(t, "lock outcome_unknown", "key")
			if got := b.pay(); got.Code != http.StatusConflict || !strings.Contains(got.Body.String(), "outcome_unknown") {
				t.Fatalf("a copy before that: %d %s", got.Code, got.Body)
			}
			b.run(t, "key", "--route", "POST /payments", "8e03978e").want(t, exitOK, key, digest)

			list := b.run(t, "outcomes", "--retention=1h").want(t, exitOK, key+"  unknown  ", "before RETENTION ends: then the next copy runs\n")
			pattern := `(?s)^endpoint_key: ` + key + `\nstate:        unknown\nseen:         ([0-9a-f]{40})\nattempts:     1\nprocess:      ([0-9a-f]{32})\n(?:age:          .*\n)?retention:    59m\d+s\n$`
			found := regexp.MustCompile(pattern).FindStringSubmatch(b.run(t, "outcomes", "show", key, "--retention=1h").out)
			if found == nil {
				t.Fatalf("%s\nshow:\n%s\nwant\n%s", list.out, b.run(t, "outcomes", "show", key).out, pattern)
			}
			seen := found[1]
			if process := b.log.field(t, "lock outcome_unknown", "process"); process != found[2] || !strings.Contains(list.out, seen) {
				t.Errorf("the process is %s, and %s in the log\n%s", found[2], process, list.out)
			}
			if again := b.run(t, "outcomes", "show", "--route", "POST /payments", "8e03978e", "--retention=1h").want(t, exitOK, seen); again.problems != "" {
				t.Error(again.problems)
			}
			b.run(t, "outcomes", "show", "--route", "POST /payments", "8e03978f").want(t, exitNotFound, "no record", "the route", "the order of the parts")
			b.run(t, "show", digest).want(t, exitOK, seen, "idempotent request")

			resolve := func(seen string, more ...string) result {
				args := append([]string{"resolve", key, resolution, seen, "--by=ada", "--retention=1h"}, test.more...)
				return b.run(t, append(args, more...)...)
			}
			if resolution == "not_done" {
				resolve(seen).want(t, exitUsage, "process "+found[2][:8]+" ran the attempt, and is silent: it may still charge.", "or --yes\n")
			}
			resolve(strings.Repeat("0", 40), "--yes").want(t, exitChanged)
			r := resolve(seen, "--yes").want(t, exitOK)
			if r.out != "resolved "+key+" as "+resolution+test.says+", by ada\n" {
				t.Errorf("%s%s", r.out, r.problems)
			}
			if test.state == "" {
				b.run(t, "outcomes", "show", key).want(t, exitNotFound)
			} else {
				b.run(t, "outcomes", "show", digest).want(t, exitOK, "state:        "+test.state+"\n", "retention:    59m")
			}
			b.run(t, "outcomes", "ls").want(t, exitOK, "reqlock: no requests with an outcome that is unknown\n")
			if got := b.pay(); got.Code != test.status || !strings.Contains(got.Body.String(), test.body) {
				t.Errorf("a copy gets %d %s", got.Code, got.Body)
			}
		})
	}
}

// An attempt that runs is left alone, and one of two operators who resolve differently is refused.
func TestResolveComparesWhatWasSeen(t *testing.T) {
	t.Parallel()
	_, rdb, o := start(t)
	locks := newLocker(t, rdb)
	attempt := must(locks.Begin(t.Context(), "pay", nil))(t)
	seen := lines[recordView](t, o.run(t, "outcomes", "show", "pay", "--json"))[0].Seen
	o.run(t, "resolve", "pay", "done", seen).want(t, exitChanged, "resolve: busy")
	if err := attempt.Unknown(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	statuses := make(chan int, 2)
	for _, how := range []string{"done", "not_done"} {
		go func() { statuses <- o.runUntil(t.Context(), "resolve", "pay", how, seen, "--yes").status }()
	}
	a, b := <-statuses, <-statuses
	if min(a, b) != exitOK || max(a, b) < exitNotFound { // not_done removes the record, so done may not find it
		t.Errorf("%d and %d", a, b)
	}
	o.run(t, "resolve", "other", "done", seen).want(t, exitNotFound)
}

// A handler that was cut off from Redis may still charge, so the operator sees what is known of its process.
func TestNotDoneAsks(t *testing.T) {
	t.Parallel()
	server, rdb, o := start(t)
	attempt := must(newLocker(t, rdb).Begin(t.Context(), "pay", nil))(t)
	if err := attempt.Unknown(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	v := lines[recordView](t, o.run(t, "outcomes", "show", "pay", "--json"))[0]
	args := []string{"resolve", "pay", "not_done", v.Seen}
	register(t, rdb, v.Process, lockView{})
	alive := "process " + v.Process[:8] + `, payments "pod-2\x1b[31m":7, ran the attempt, and wrote its record `
	o.run(t, args...).want(t, exitUsage, alive, "or --yes")
	o.run(t, "resolve", "pay", "not_done", strings.ToUpper(v.Seen)).want(t, exitUsage, alive, "or --yes")
	service := user(t, server, "resetchannels "+redistest.Rights)
	service.run(t, args...).want(t, exitUsage, "cannot find out which process ran the attempt: it may still charge.")
	o.isTerminal = true
	for _, input := range []string{"", "y\n", "pay\n"} {
		o.input = input
		o.run(t, args...).want(t, exitError, "not confirmed: nothing was done", alive, "Type "+v.Digest)
	}
	o.input = v.Digest + "\n"
	o.run(t, args...).want(t, exitOK, alive, "resolved pay as not_done")
	o.run(t, args...).want(t, exitNotFound)
}

// The rights of the service are enough to look and to resolve by the endpoint key, also one that Redis has as a digest.
func TestTheServicesUserCanResolve(t *testing.T) {
	t.Parallel()
	server, rdb, _ := start(t)
	o := &bank{operator: user(t, server, "resetchannels "+redistest.Rights)}
	locks := newLocker(t, rdb, core.WithPrefix(bankPrefix))
	for _, key := range []string{"pay", "half }"} {
		attempt := must(locks.Begin(t.Context(), key, nil))(t)
		if err := attempt.Unknown(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		v := lines[recordView](t, o.run(t, "outcomes", "show", key, "--json"))[0]
		if v.State != "unknown" || v.Attempts != 1 || v.EndpointKey != key || v.Retention <= 0 {
			t.Errorf("%+v", v)
		}
		o.run(t, "resolve", key, "done", v.Seen, "--digest").want(t, exitOK, "resolved "+v.Digest+" as done\n")
		o.run(t, "outcomes", "show", key).want(t, exitOK, "state:        done")
	}
	o.run(t, "outcomes", "show", "other").want(t, exitNotFound)
	o.run(t, "outcomes").want(t, exitError, "NOPERM")
}

// All other spellings need the rights to read as well.
func TestResolveFindsEachSpelling(t *testing.T) {
	t.Parallel()
	_, rdb, o := start(t)
	locks := newLocker(t, rdb)
	attempt := must(locks.Begin(t.Context(), "pay", nil))(t)
	if err := attempt.Unknown(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	v := lines[lockView](t, o.run(t, "show", "pay", "--json"))[0]
	for _, spelling := range []string{"i:pay", v.Digest, v.Name, "{" + v.Name + "}:r", "pay"} {
		o.run(t, "resolve", spelling, "done", v.Record.Seen).want(t, exitOK, "resolved pay as done\n")
	}
}
