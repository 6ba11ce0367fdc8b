package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

func TestResolveRefusesWrongArguments(t *testing.T) {
	t.Parallel()
	o := operator{url: "redis://127.0.0.1:1"} // no command is sent
	seen := strings.Repeat("a", 40)
	for _, test := range []struct{ args, want string }{
		{"resolve", "an argument is missing\nusage: reqlock resolve KEY not_done|done SEEN, or KEY answered SEEN STATUS BODY"},
		{"resolve KEY delete " + seen, "none of the forms"},
		{"resolve KEY done " + seen + " 201", "none of the forms"},
		{"resolve KEY answered " + seen + " 201", "none of the forms"},
		{"resolve KEY answered " + seen + " created {}", "STATUS is no number"},
		{"resolve KEY answered " + seen + " 99 {}", "99"},
		{"resolve KEY done 1234", "SEEN is not the 40 hex digits"},
	} {
		o.run(t, strings.Fields(test.args)...).want(t, exitUsage, test.want)
	}
}

// Redis may have only a digest of the key, and then only the key itself names the request.
func TestResolveByDigestAsksForTheKey(t *testing.T) {
	t.Parallel()
	_, rdb, o := start(t)
	must(newLocker(t, rdb).Begin(t.Context(), "half }", nil))(t)
	r := o.run(t, "resolve", digestOf("half }"), "done", strings.Repeat("a", 40)).want(t, exitError, "KEY")
	if strings.Contains(r.problems, "core.") {
		t.Errorf("an operator has no code to change: %s", r.problems)
	}
}

// An interrupt of resolve says in one line what may have happened.
func TestAnInterruptOfResolveIsOneLine(t *testing.T) {
	t.Parallel()
	server, _, o := start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	proxy.Partition()
	o.url = "redis://" + proxy.Addr()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	r := o.runUntil(ctx, "resolve", "k", "done", strings.Repeat("a", 40)).want(t, exitError, "may have taken effect")
	if strings.Count(r.problems, "\n") != 1 {
		t.Errorf("it prints %s", r.problems)
	}
}
