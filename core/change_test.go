package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/reqlock/reqlock/core"
)

// asAda returns a context in which ada acts.
func asAda(ctx context.Context, t *testing.T) context.Context {
	t.Helper()
	acting, err := core.AsOperator(ctx, "ada", "the provider says so")
	noError(t, err)
	return acting
}

func TestAResolveIsAnEvent(t *testing.T) {
	t.Parallel()
	rdb := newEmbedded(t)
	locks, events := observed(t, rdb, core.WithName("payment"), core.WithLogger(nil))
	for name, test := range map[string]struct {
		resolution    core.Resolution
		before, after string
	}{
		"not done": {core.NotDone(), "unknown", "no record"},
		"done":     {core.Done(), "unknown", "done"},
		"answered": {core.Answered(anAnswer(t, "paid")), "unknown", "answered"},
		"damaged":  {core.Done(), "damaged", "done"},
	} {
		seen := interrupted(t, locks, name)
		if name == "damaged" {
			noError(t, rdb.Set(t.Context(), "{reqlock:i:damaged}:r", "x", time.Hour).Err())
			seen = wantOutcome(t, locks, name, core.StateDamaged, 0)
		}
		ctx, cancel := context.WithCancel(traced(t.Context(), "the operator's"))
		noError(t, locks.Resolve(asAda(ctx, t), name, test.resolution, seen))
		cancel()
		got := events.of(core.OperatorResolved)
		if len(got) == 0 {
			t.Fatalf("%s: no event", name)
		}
		e := got[len(got)-1]
		if e.Change == nil || *e.Change != (core.Change{By: "ada", Why: "the provider says so", Before: test.before, After: test.after}) {
			t.Errorf("%s: %+v", name, e.Change)
		}
		if e.Key.Raw() != "i:"+name || e.Name != "payment" || !e.Idempotent || e.Attempt != seen || e.Err != nil || len(e.Process) != 32 {
			t.Errorf("%s: %+v", name, e)
		}
		if traceOf(e) != "the operator's" || e.Context().Err() != nil {
			t.Errorf("%s: the context is that of %q, %v", name, traceOf(e), e.Context().Err())
		}
	}
	if got := events.of(core.OperatorResolved); len(got) != 4 {
		t.Errorf("%d events", len(got))
	}
}

// A call that surely has changed nothing is no event. A repeated call is one, and says that nothing was left to do.
func TestARefusedResolveIsNoEvent(t *testing.T) {
	t.Parallel()
	locks, events := observed(t, newEmbedded(t), core.WithLogger(nil))
	first := interrupted(t, locks, "k")
	running := begin(t, locks, "runs")
	seen, err := locks.ReadRecord(t.Context(), "runs")
	noError(t, err)
	ctx := asAda(t.Context(), t)
	for _, test := range []struct {
		key  string
		seen core.AttemptID
		want error
	}{{"k", anAttempt(t), core.ErrChanged}, {"never begun", first, core.ErrNotFound}, {"runs", seen.Attempt, core.ErrBusy}} {
		wantError(t, locks.Resolve(ctx, test.key, core.Done(), test.seen), test.want)
	}
	if locks.Resolve(ctx, "k", core.Resolution{}, first) == nil {
		t.Error("an empty resolution is accepted")
	}
	noError(t, running.Abort(t.Context()))
	if got := events.of(core.OperatorResolved); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	for range 2 { // the second one without an operator
		noError(t, locks.Resolve(ctx, "k", core.Done(), first))
		ctx = t.Context()
	}
	if got := events.of(core.OperatorResolved); len(got) != 2 || *got[1].Change != (core.Change{Before: "done", After: "done"}) {
		t.Errorf("%+v", got)
	}
}

// What was perhaps changed is an event, with the error that the operator gets.
func TestAResolveWithoutAReplyIsAnEvent(t *testing.T) {
	t.Parallel()
	_, proxy, rdb := behindProxy(t)
	locks, events := observed(t, rdb, core.WithLogger(nil))
	proxy.Partition()
	ctx, cancel := context.WithTimeout(asAda(t.Context(), t), 100*time.Millisecond)
	defer cancel()
	err := locks.Resolve(ctx, "k", core.NotDone(), anAttempt(t))
	wantError(t, err, core.ErrUnavailable)
	got := events.of(core.OperatorResolved)
	if len(got) != 1 || !errors.Is(got[0].Err, core.ErrUnavailable) || got[0].Err.Error() != err.Error() ||
		*got[0].Change != (core.Change{By: "ada", Why: "the provider says so", After: "no record"}) {
		t.Errorf("%+v, %v", got, err)
	}
}

// An observer may keep a Change, but Fiber uses the memory of its texts again.
func TestAsOperatorCopiesItsTexts(t *testing.T) {
	t.Parallel()
	locks, events := observed(t, newEmbedded(t), core.WithLogger(nil))
	form := []byte("ada paid")
	ctx, err := core.AsOperator(t.Context(), unsafe.String(&form[0], 3), unsafe.String(&form[4], 4))
	noError(t, err)
	noError(t, locks.Resolve(ctx, "k", core.Done(), interrupted(t, locks, "k")))
	copy(form, "eve lied")
	if got := events.of(core.OperatorResolved)[0].Change; got.By != "ada" || got.Why != "paid" {
		t.Errorf("%+v", got)
	}
}

// An operator cannot forge a line of a log.
func TestAsOperatorRefusesWhatForgesALine(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ by, why, want string }{
		{"", "x", "the name (by) is empty"},
		{" ", "x", "the name (by) is empty"},
		{"ada\n", "", "the name (by) has control characters"},
		{"ada", "a\r\nlevel=INFO msg=forged", "the reason (why) has control characters"},
		{"ada", "a\x1b[2K", "the reason (why) has control characters"},
		{"ada", "a\u0085b", "the reason (why) has control characters"},
		{"ada", "a\u2028b", "the reason (why) has control characters"},
		{"ada", "a\u202eb", "the reason (why) has control characters"},
		{"ada\xff", "", "the name (by) is not UTF-8"},
		{strings.Repeat("a", 501), "", "the name (by) has more than 500 bytes"},
		{"ada", strings.Repeat("é", 251), "the reason (why) has more than 500 bytes"},
		{"ada", "", ""},
		{"Zoë \U0001F469\u200d\U0001F4BB", strings.Repeat("é", 250), ""},
	} {
		ctx, err := core.AsOperator(t.Context(), test.by, test.why)
		if (err == nil) != (test.want == "") || err != nil && (ctx != nil || !strings.HasPrefix(err.Error(), "reqlock: AsOperator: "+test.want)) {
			t.Errorf("%q, %q: %v", test.by, test.why, err)
		}
	}
}
