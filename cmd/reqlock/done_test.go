package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
)

// What an operator has changed is one line, with who, why, and what it was: those of core.Change.
func TestAChangeIsOneLine(t *testing.T) {
	t.Parallel()
	_, rdb, o := start(t)
	locks := newLocker(t, rdb, core.WithTTL(time.Minute))
	attempt := must(locks.Begin(t.Context(), "pay", nil))(t)
	if err := attempt.Unknown(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	seen := lines[recordView](t, o.run(t, "outcomes", "show", "pay", "--json"))[0].Seen
	hold := func(key string) (held string) {
		must(locks.Lock(t.Context(), key))(t)
		h := holderOf(t, o, key)
		return "held by process " + h.ID + ", lease " + h.Lease
	}
	one, two := hold("one"), hold("two")
	for _, test := range []struct {
		args []string
		want doneView
	}{
		{[]string{"resolve", "pay", "done", seen}, doneView{Action: "resolved_done", Before: "unknown", After: "done"}},
		{[]string{"resolve", "i:pay", "done", seen}, doneView{Action: "resolved_done", Before: "done", After: "done"}}, // by package inspect
		{[]string{"free", "one"}, doneView{Action: "revoked", Leases: 1, Before: one, After: "revoked"}},
		{[]string{"free", "two", "--now", "--yes"}, doneView{Action: "freed", Leases: 1, Before: two, After: "free"}},
	} {
		got := lines[doneView](t, o.run(t, append(test.args, "--by=ada", "--why=it hangs", "--json")...))[0]
		if test.want.By, test.want.Why, test.want.Digest = "ada", "it hangs", got.Digest; got != test.want || got.Digest == "" {
			t.Errorf("%s: %+v, want %+v", test.args, got, test.want)
		}
	}
}

// The line says where the name ends.
func TestANameThatLooksLikeAReasonIsQuoted(t *testing.T) {
	t.Parallel()
	_, rdb, o := start(t)
	must(newLocker(t, rdb, core.WithTTL(time.Minute)).Lock(t.Context(), "k"))(t)
	if got := o.run(t, "free", "k", "--by=ada: paid, by eve", "--why=it hangs").out; !strings.HasSuffix(got, `, by "ada: paid, by eve": it hangs`+"\n") {
		t.Error(got)
	}
}

// A name or a reason that could forge a line is refused before anything is done.
func TestASignatureThatForgesALineIsRefused(t *testing.T) {
	t.Parallel()
	o := operator{url: "redis://127.0.0.1:1"} // no command is sent
	for want, flags := range map[string][]string{
		"--why needs --by":                        {"--why=x"},
		"the name (by) is empty":                  {"--by="}, // as of a variable that is not set
		"the name (by) has control characters":    {"--by=ada\nrevoked"},
		"the reason (why) has control characters": {"--by=ada", "--why=a\x1b[1m"},
		"the name (by) has more than 500 bytes":   {"--by=" + strings.Repeat("a", 501)},
	} {
		for _, command := range [][]string{{"free", "k"}, {"resolve", "k", "done", strings.Repeat("a", 40)}} {
			o.run(t, append(command, flags...)...).want(t, exitUsage, want)
		}
	}
}

// What was perhaps changed is a line, too, beside the error.
func TestAnUnconfirmedChangeIsALine(t *testing.T) {
	t.Parallel()
	r := interruptResolve(t, "--by=ada", "--json")
	var got doneView
	if err := json.Unmarshal([]byte(r.out), &got); err != nil || got.By != "ada" || got.After != "done" || !strings.Contains(got.Error, "may have taken effect") {
		t.Errorf("%v: %s", err, r.out)
	}
}
