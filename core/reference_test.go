package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// referenceKey is the key of a reference in a context.
type referenceKey struct{}

// withReference returns a context with a reference.
func withReference(ctx context.Context, reference string) context.Context {
	return context.WithValue(ctx, referenceKey{}, reference)
}

// referenceOf is a function of WithReference.
func referenceOf(ctx context.Context) string {
	reference, _ := ctx.Value(referenceKey{}).(string)
	return reference
}

// A copy in another process learns which request was the first one: by its events, by its refusal if that is
// wanted, and by the record.
func testCopyLearnsFirstRequest(t *testing.T, servers *deployment) {
	one, _ := servers.observed(t, servers.Client(t), core.WithReference(referenceOf))
	two, events := servers.observed(t, servers.Client(t), core.WithFirstShown(true)) // without WithReference
	const first = "trace \"1\" <b>"
	beginFirst := func(key string) *core.Attempt {
		a, err := one.Begin(withReference(t.Context(), first), key, []byte("f"))
		noError(t, err)
		return a
	}
	check := func(locks *core.Locker, key, fingerprint string, kind error) {
		t.Helper()
		_, err := locks.Begin(withReference(t.Context(), "copy"), key, []byte(fingerprint))
		wantError(t, err, kind)
		refused := events.of(core.Refused)
		if event := refused[len(refused)-1]; event.First != first {
			t.Errorf("%v: the event has %q", kind, event.First)
		}
		shown := ""
		if locks == two {
			shown = first
		}
		if refusal, _ := core.RefusalOf(fmt.Errorf("wrapped: %w", err)); refusal.First != shown {
			t.Errorf("%v: the refusal has %q, want %q", kind, refusal.First, shown)
		}
	}
	hidden := two.With(core.WithFirstShown(false), core.WithReference(referenceOf))
	read := func(key string, state core.RecordState, want string) core.Record {
		t.Helper()
		record, err := two.ReadRecord(t.Context(), key)
		if err != nil || record.State != state || record.First != want {
			t.Errorf("%s: %+v, %v; want %v of %q", key, record, err, state, want)
		}
		return record
	}

	a := beginFirst("{k}answered")
	for _, locks := range []*core.Locker{two, hidden} {
		check(locks, "{k}answered", "f", core.ErrBusy)
		check(locks, "{k}answered", "g", core.ErrMismatch)
	}
	read("{k}answered", core.StateRunning, first)
	noError(t, a.Commit(t.Context(), []byte("answer")))
	wantReplay(t, two, "{k}answered", "answer")
	if replayed := events.of(core.Replayed); len(replayed) != 1 || replayed[0].First != first {
		t.Errorf("%+v", replayed)
	}
	check(two, "{k}answered", "g", core.ErrMismatch)
	read("{k}answered", core.StateAnswered, first)

	noError(t, beginFirst("{k}done").Done(t.Context()))
	check(two, "{k}done", "f", core.ErrUnreplayable)
	read("{k}done", core.StateDone, first)

	noError(t, beginFirst("{k}unknown").Unknown(t.Context(), errors.New("unknown")))
	check(two, "{k}unknown", "f", core.ErrOutcomeUnknown)
	read("{k}unknown", core.StateUnknown, first)
	again, err := one.With(core.WithRerunUnknown(true)).Begin(withReference(t.Context(), "again"), "{k}unknown", []byte("f"))
	noError(t, err)
	read("{k}unknown", core.StateRunning, "again")
	noError(t, again.Abort(t.Context()))
	read("{k}unknown", core.StateUnknown, "") // it is about the attempt before that one

	noError(t, beginFirst("{k}resolved").Unknown(t.Context(), nil))
	record := read("{k}resolved", core.StateUnknown, first)
	noError(t, two.Resolve(t.Context(), "{k}resolved", core.Done(), record.Attempt))
	read("{k}resolved", core.StateDone, first)

	noError(t, beginFirst("{k}aborted").Abort(t.Context()))
	noError(t, begin(t, two, "{k}aborted").Commit(t.Context(), nil)) // without a reference
	read("{k}aborted", core.StateAnswered, "")
}

// OutcomeUnknown has the reference of the attempt whose outcome is unknown, whoever reports it.
func TestOutcomeUnknownHasReferenceOfItsAttempt(t *testing.T) {
	t.Parallel()
	rdb := newEmbedded(t)
	one, own := observed(t, rdb, core.WithReference(referenceOf))
	two, others := observed(t, rdb, core.WithRerunUnknown(true), core.WithReference(referenceOf))
	a, err := one.Begin(withReference(t.Context(), "first"), "k", nil)
	noError(t, err)
	noError(t, a.Unknown(t.Context(), nil))
	again, err := two.Begin(withReference(t.Context(), "again"), "k", nil)
	noError(t, err)
	noError(t, again.Unknown(t.Context(), nil))
	noError(t, two.Close(t.Context()))
	var got []string
	for _, event := range append(own.of(core.OutcomeUnknown), others.of(core.OutcomeUnknown)...) {
		got = append(got, event.First)
	}
	if want := []string{"first", "first", "again"}; strings.Join(got, ",") != strings.Join(want, ",") {
		t.Errorf("%q, want %q", got, want)
	}
	for _, event := range append(own.all(), others.all()...) {
		if event.First != "" && event.Kind != core.OutcomeUnknown {
			t.Errorf("%v has %q", event.Kind, event.First)
		}
	}
}

// A text that cannot be a reference, and a function that panics, refuse no request.
func TestBadReferenceIsLeftOutAndWarnedOfOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		of   func(context.Context) string
		want string
	}{
		"too long":  {func(context.Context) string { return strings.Repeat("secret", 11) }, "of 66 bytes is left out: return at most 64"},
		"two lines": {func(context.Context) string { return "secret\nlevel=ERROR" }, "printable ones of ASCII"},
		"a panic":   {func(context.Context) string { panic("secret") }, "has panicked"},
	} {
		locks, events := observed(t, newEmbedded(t), core.WithReference(test.of))
		for _, view := range []*core.Locker{locks, locks, locks.With(core.WithName("view"))} {
			noError(t, begin(t, view, "k").Abort(t.Context()))
		}
		a := begin(t, locks, "k")
		if record, err := locks.ReadRecord(t.Context(), "k"); err != nil || record.First != "" {
			t.Errorf("%s: %+v, %v", name, record, err)
		}
		noError(t, a.Commit(t.Context(), nil))
		warned := events.of(core.Warned)
		if len(warned) != 1 || !strings.HasPrefix(warned[0].Err.Error(), "reqlock: WithReference: ") || !strings.Contains(warned[0].Err.Error(), test.want) ||
			strings.Contains(warned[0].Err.Error(), "secret") {
			t.Errorf("%s: %+v", name, warned)
		}
	}
}

// The program may have changed the record by hand, or another client.
func TestRecordWithABadReferenceIsReadWithoutIt(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	locks, events := observed(t, rdb, core.WithReference(referenceOf), core.WithFirstShown(true))
	a, err := locks.Begin(withReference(t.Context(), "first"), "k", []byte("f"))
	noError(t, err)
	noError(t, a.Commit(t.Context(), []byte("answer")))
	const name = "{reqlock:i:k}:r"
	if noted := storetest.RecordAt(t, rdb, name)["r"]; noted != "first" {
		t.Fatalf("the record has %q", noted)
	}
	for _, bad := range []string{"\x1b]0;", "a\r\nb", strings.Repeat("a", 65), "\xff"} {
		storetest.ChangeRecord(t, rdb, name, map[string]string{"r": bad})
		wantReplay(t, locks, "k", "answer")
		if record, err := locks.ReadRecord(t.Context(), "k"); err != nil || record.First != "" {
			t.Errorf("%q: %+v, %v", bad, record, err)
		}
	}
	for _, event := range events.of(core.Replayed) {
		if event.First != "" {
			t.Errorf("%q", event.First)
		}
	}
}

// Texts of Fiber are memory that the next request of another client gets.
func TestReferenceIsCopied(t *testing.T) {
	t.Parallel()
	header := []byte("first")
	locks, events := observed(t, newEmbedded(t), core.WithReference(func(context.Context) string { return unsafe.String(&header[0], len(header)) }))
	a, err := locks.Begin(t.Context(), "k", nil)
	noError(t, err)
	copy(header, "other")
	_, err = locks.Begin(t.Context(), "k", nil)
	wantError(t, err, core.ErrBusy)
	if got := events.of(core.Refused)[0].First; got != "first" {
		t.Errorf("the copy learns of %q", got)
	}
	noError(t, a.Commit(t.Context(), nil))
}

// A line of the log has the reference, quoted where it has to be.
func TestLogQuotesFirst(t *testing.T) {
	t.Parallel()
	var log logBuffer
	core.SlogObserver(log.logger())(core.Event{Kind: core.Replayed, Idempotent: true, First: `1" level=ERROR msg="x`})
	if got := log.String(); !strings.Contains(got, ` first="1\" level=ERROR msg=\"x"`) {
		t.Error(got)
	}
}

// Without the option, Redis keeps the same bytes as before.
func TestRecordHasNoReferenceIfOff(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	a := begin(t, newLocker(t, rdb), "k")
	noError(t, a.Commit(t.Context(), nil))
	if _, hasReference := storetest.RecordAt(t, rdb, "{reqlock:i:k}:r")["r"]; hasReference {
		t.Error("the record has a reference")
	}
}
