package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
	"github.com/reqlock/reqlock/internal/redis/registry"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// An operator runs the command in this process.
type operator struct {
	url string
	env map[string]string
	// input is what the operator types, or typing if that is not nil. isTerminal makes all streams terminals.
	input      string
	typing     io.Reader
	isTerminal bool
	out        io.Writer        // nil: the result has it
	ticks      <-chan time.Time // nil: none
}

// A result is what a run has printed.
type result struct {
	status        int
	out, problems string
}

// run runs the command with these arguments.
func (o operator) run(t testing.TB, args ...string) result {
	t.Helper()
	return o.runUntil(t.Context(), args...)
}

// interruptResolve runs resolve on a Redis that does not reply, and interrupts it.
func interruptResolve(t *testing.T, flags ...string) result {
	t.Helper()
	server, _, o := start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	proxy.Partition()
	o.url = "redis://" + proxy.Addr()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	args := append([]string{"resolve", "k", "done", strings.Repeat("a", 40)}, flags...)
	return o.runUntil(ctx, args...).want(t, exitError, "may have taken effect")
}

// runUntil is run with a context, which an interrupt ends.
func (o operator) runUntil(ctx context.Context, args ...string) result {
	var out, problems bytes.Buffer
	s := session{
		in: strings.NewReader(o.input), out: &out, problems: &problems,
		getenv: func(name string) string {
			if name == "REDIS_URL" {
				return o.url
			}
			return o.env[name]
		},
		isTerminal: func(any) bool { return o.isTerminal },
		ticks:      func(time.Duration) (<-chan time.Time, func()) { return o.ticks, func() {} },
	}
	if o.typing != nil {
		s.in = o.typing
	}
	if o.out != nil {
		s.out = o.out
	}
	status := run(ctx, args, s)
	return result{status, out.String(), problems.String()}
}

// want fails the test unless the run has ended with this status, and printed these texts.
func (r result) want(t testing.TB, status int, texts ...string) result {
	t.Helper()
	if r.status != status {
		t.Fatalf("status %d, want %d\nout: %s\nproblems: %s", r.status, status, r.out, r.problems)
	}
	for _, text := range texts {
		if !strings.Contains(r.out+r.problems, text) {
			t.Errorf("nothing printed has %q\nout: %s\nproblems: %s", text, r.out, r.problems)
		}
	}
	return r
}

// lines returns the objects of --json.
func lines[T any](t testing.TB, r result) (all []T) {
	t.Helper()
	r.want(t, exitOK)
	for line := range strings.Lines(r.out) {
		var value T
		if err := json.Unmarshal([]byte(line), &value); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		all = append(all, value)
	}
	return all
}

// start returns a server, a client of it, and an operator of it.
func start(t testing.TB) (*redistest.Server, redis.UniversalClient, operator) {
	t.Helper()
	server := redistest.Reuse(t)
	server.Grant("+scan", "+dbsize", "+getrange", "+hmget", "+strlen", "+exists", "+info")
	return server, server.Client(t), operator{url: "redis://" + server.Addr()}
}

// newLocker returns a Locker, as another process has one, that is closed at the end of the test.
func newLocker(t testing.TB, rdb redis.UniversalClient, opts ...core.Option) *core.Locker {
	t.Helper()
	locks, err := core.New(rdb, append([]core.Option{core.WithLogger(nil), core.WithCommandTimeout(2 * time.Second)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond) // leases may be left
		defer cancel()
		_ = locks.Close(ctx)
		ctx, cancel = context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := locks.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return locks
}

// must returns the result of a call. It fails the test if the call has failed.
func must[T any](result T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
}

// wait makes a process wait for the key until the test ends. It returns when the process is in the queue.
func wait(t testing.TB, o operator, locks *core.Locker, key string) {
	t.Helper()
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(ended)
		_, _ = locks.Lock(ctx, key)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	suite.Eventually(t, "a process waits", func() bool { return lines[lockView](t, o.run(t, "show", key, "--json"))[0].Waiting > 0 })
}

// register writes the record of a process, which has held the lock for 65 s, if it is a holder, and has 4 requests
// that have waited for it as long.
func register(t testing.TB, rdb redis.UniversalClient, id string, of lockView) {
	t.Helper()
	lease := ""
	for _, h := range of.Holders {
		if h.ID == id {
			lease = h.Lease
		}
	}
	now, name := time.Now(), keyspace.New("reqlock:").Process(id)
	p := registry.Process{
		Service: "payments", Version: "v1.2.3", Host: "pod-2\x1b[31m", PID: 7, Started: now.Add(-time.Hour), Beat: now, Held: 30, Waiting: 40,
		Holds: []registry.Hold{{Digest: of.Digest, Lease: lease, Name: "account", Since: now.Add(-65 * time.Second), Caller: "github.com/acme/bank/transfer.go:42 (bank.Transfer)"}},
		Waits: []registry.Wait{{Digest: of.Digest, Name: "account", Since: now.Add(-65 * time.Second), Caller: "bank/wait.go:7", Requests: 4}},
	}
	if err := rdb.HSet(t.Context(), name, registry.Encode(&p, time.Hour)...).Err(); err != nil {
		t.Fatal(err)
	}
	if err := rdb.PExpire(t.Context(), name, time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
}

// processOf returns the id of the process of a lease.
func processOf(lease *core.Lease) string {
	process, _, _ := strings.Cut(lease.Token(), ":")
	return process
}

// reader returns an operator with the rights to read of docs/inspect.md alone.
func reader(t testing.TB, server *redistest.Server) operator {
	t.Helper()
	const mark = "ACL SETUSER operator on >a-password "
	_, page, found := strings.Cut(string(must(os.ReadFile("../../docs/inspect.md"))(t)), mark)
	if !found {
		t.Fatal("docs/inspect.md has no rights to read")
	}
	rules, _, _ := strings.Cut(page, "\n")
	return user(t, server, rules)
}

// user returns an operator with these rights alone.
func user(t testing.TB, server *redistest.Server, rules string) operator {
	t.Helper()
	command := []any{"ACL", "SETUSER", "operator", "on", ">a-password"}
	for _, rule := range strings.Fields(rules) {
		command = append(command, rule)
	}
	if err := redistest.AdminClient(t, server.Addr()).Do(t.Context(), command...).Err(); err != nil {
		t.Fatal(err)
	}
	return operator{url: "redis://operator:a-password@" + server.Addr()}
}
