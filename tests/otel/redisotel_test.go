package oteltest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/extra/redisotel/v9"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// isLock reports whether a command is one of reqlock: its first key begins with the prefix of keys.
// The page of the docs has the same function.
func isLock(cmd redis.Cmder) bool {
	args := cmd.Args() // SET key ..., EVALSHA script keys key ...
	for _, arg := range args[:min(len(args), 4)] {
		if strings.HasPrefix(strings.TrimPrefix(fmt.Sprint(arg), "{"), "reqlock:") {
			return true
		}
	}
	return false
}

// The filter accepts each command of a program, also one without arguments or without a name.
func TestTheFilterFindsTheCommandsOfReqlock(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []any
		want bool
	}{
		{nil, false},
		{[]any{"PING"}, false},
		{[]any{"GET", "account"}, false},
		{[]any{"SET", "account", "reqlocked"}, false},
		{[]any{"SET", "reqlock:account:42", "token", "NX"}, true},
		{[]any{"EVALSHA", "sha", 2, "{reqlock:i:key}", "other"}, true},
		{[]any{"PUBLISH", "reqlock:hint", "message"}, true},
	} {
		if got := isLock(redis.NewCmd(t.Context(), test.args...)); got != test.want {
			t.Errorf("%v: %t", test.args, got)
		}
	}
}

// What redisotel writes about the commands of a Locker: by default keys, tokens and stored answers,
// in traces of their own. The commands of the program, on the same client or on another one, are
// always in the trace of the request.
func TestRedisotelBesideLocks(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		opts  []redisotel.TracingOption
		own   bool   // the Locker has a client of its own
		leaks string // what can be read in a span
		roots bool   // commands of the Locker begin traces
	}{
		"default":             {leaks: "answer key token", roots: true},
		"without statements":  {opts: []redisotel.TracingOption{redisotel.WithDBStatement(false)}, roots: true},
		"with a filter":       {opts: filtered()},
		"a client of its own": {own: true},
		"both":                {opts: filtered(), own: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newObserved(t)
			traced := redistest.Shared(t, redistest.OnServer).Client(t)
			if err := redisotel.InstrumentTracing(traced, append(test.opts, redisotel.WithTracerProvider(o.tracers))...); err != nil {
				t.Fatal(err)
			}
			forLocks := traced
			if test.own {
				forLocks = o.rdb
			}
			prefix := "reqlock:" + o.prefix
			secrets := useLocks(t, o, newLocker(t, forLocks, core.WithPrefix(prefix)), traced, prefix)
			var leaks []string
			roots := map[string]int{}
			for _, span := range o.spans.GetSpans() {
				text := fmt.Sprint(span.Name, span.Attributes, span.Events, span.Status)
				for what, secret := range secrets {
					if strings.Contains(text, secret) && !slices.Contains(leaks, what) {
						leaks = append(leaks, what)
					}
				}
				// The client begins others once for each connection, without any key.
				if !span.Parent.IsValid() && (span.Name == "set" || span.Name == "evalsha") {
					roots[span.Name]++
				}
			}
			slices.Sort(leaks)
			if got := strings.Join(leaks, " "); got != test.leaks {
				t.Errorf("spans have %q, want %q", got, test.leaks)
			}
			if (len(roots) > 0) != test.roots {
				t.Errorf("root spans: %v", roots)
			}
		})
	}
}

// filtered returns the options of the docs for a client that a Locker shares.
func filtered() []redisotel.TracingOption {
	return []redisotel.TracingOption{
		redisotel.WithDialFilter(true),
		redisotel.WithCommandFilter(func(cmd redis.Cmder) bool { return redisotel.DefaultCommandFilter(cmd) || isLock(cmd) }),
		redisotel.WithCommandsFilter(func(cmds []redis.Cmder) bool {
			return slices.ContainsFunc(cmds, redisotel.DefaultCommandFilter) || slices.ContainsFunc(cmds, isLock)
		}),
	}
}

// useLocks takes a lock, stores an answer and sends a command of the program, in the span of a
// request. It returns what no span may have.
func useLocks(t *testing.T, o *observed, locks *core.Locker, traced redis.UniversalClient, prefix string) map[string]string {
	t.Helper()
	const key, answer = "a-key-of-a-client", "an-answer-to-a-client"
	ctx, request := o.tracers.Tracer("test").Start(t.Context(), "request")
	lease, err := locks.Lock(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	token, err := o.rdb.Get(ctx, prefix+key).Result()
	if err != nil || len(token) < 8 {
		t.Fatalf("the token is %q: %v", token, err)
	}
	if _, err := locks.TryLock(ctx, key); err == nil {
		t.Error("locked twice")
	}
	attempt, err := locks.Begin(ctx, key, []byte("payload"))
	if err != nil {
		t.Fatal(err)
	}
	if err := attempt.Commit(ctx, []byte(answer)); err != nil {
		t.Error(err)
	}
	if err := traced.Set(ctx, "own:"+prefix, "value", 0).Err(); err != nil {
		t.Error(err)
	}
	if err := lease.Release(ctx); err != nil {
		t.Error(err)
	}
	request.End()
	if err := locks.Close(context.WithoutCancel(ctx)); err != nil {
		t.Error(err)
	}
	if !slices.ContainsFunc(o.spans.GetSpans(), func(span tracetest.SpanStub) bool {
		return span.Name == "set" && span.Parent.SpanID() == request.SpanContext().SpanID()
	}) {
		t.Error("the command of the program is not in the trace of its request")
	}
	return map[string]string{"key": key, "token": token, "answer": answer}
}
