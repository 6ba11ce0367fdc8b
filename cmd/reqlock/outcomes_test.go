package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
)

// A client may have sent the reference of the first request.
func TestOutcomeShowsFirstRequestQuoted(t *testing.T) {
	t.Parallel()
	_, rdb, o := start(t)
	locks := newLocker(t, rdb, core.WithReference(func(context.Context) string { return ` 1" state: done` }))
	must(locks.Begin(t.Context(), "k", nil))(t)
	for _, command := range [][]string{{"outcomes", "show", "k"}, {"show", "k"}} {
		o.run(t, command...).want(t, exitOK, `first:`, `" 1\" state: done"`)
	}
	if v := lines[recordView](t, o.run(t, "outcomes", "show", "k", "--json"))[0]; v.First != ` 1" state: done` {
		t.Errorf("%+v", v)
	}
	other := newLocker(t, rdb)
	must(other.Begin(t.Context(), "without", nil))(t)
	if text := o.run(t, "outcomes", "show", "without").out; strings.Contains(text, "first") {
		t.Error(text)
	}
}

// The oldest outcome stands first, with the process of its attempt. An attempt of a process that has died is unknown,
// and one that runs is not.
func TestOutcomesAreSortedByAge(t *testing.T) {
	t.Parallel()
	_, rdb, o := start(t)
	locks := newLocker(t, rdb)
	for key, retention := range map[string]time.Duration{"a": 20 * time.Hour, "b": 5 * time.Hour, "c": 23 * time.Hour} {
		must(locks.Begin(t.Context(), key, nil))(t)
		lock := lines[lockView](t, o.run(t, "show", key, "--json"))[0].Name
		if err := rdb.Del(t.Context(), lock).Err(); err != nil {
			t.Fatal(err)
		}
		if err := rdb.PExpire(t.Context(), "{"+lock+"}:r", retention).Err(); err != nil {
			t.Fatal(err)
		}
	}
	running := must(locks.Begin(t.Context(), "runs", nil))(t)
	process := processOf(running.Lease())[:8]
	for args, want := range map[string]string{
		"": "b a c", "--match [ab]": "b a", "--state running": "runs", "--state all": "b a c runs", "--process " + process: "b a c", "--process 00000": "",
	} {
		var keys []string
		for _, v := range lines[recordView](t, o.run(t, append([]string{"outcomes", "--json"}, strings.Fields(args)...)...)) {
			keys = append(keys, v.EndpointKey)
		}
		if got := strings.Join(keys, " "); got != want {
			t.Errorf("outcomes %s: %s, want %s", args, got, want)
		}
	}
	o.run(t, "outcomes").want(t, exitOK, "b             unknown  19h0m  4h59m      1         "+process)
	o.run(t, "outcomes", "--limit=1").want(t, exitOK, "the list is cut short after 1 requests")
}
