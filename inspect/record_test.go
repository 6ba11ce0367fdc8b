package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/inspect"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

func TestRecordsShowsWhatBecameOfRequests(t *testing.T) {
	t.Parallel()
	onEachKind(t, func(t *testing.T, rdb redis.UniversalClient) {
		t.Helper()
		ctx := t.Context()
		locks, i := newLocker(t, rdb, core.WithReference(func(context.Context) string { return "request 1" })), newInspector(t, rdb)
		foreigners(t, rdb)
		begin := func(key string) *core.Attempt { return must(locks.Begin(ctx, key, nil))(t) }
		running := begin("runs")
		for key, end := range map[string]func(a *core.Attempt) error{
			"answered": func(a *core.Attempt) error { return a.Commit(ctx, []byte("a secret answer")) },
			"done":     func(a *core.Attempt) error { return a.Done(ctx) },
			"aborted":  func(a *core.Attempt) error { return a.Abort(ctx) },
			"unknown":  func(a *core.Attempt) error { return a.Unknown(ctx, errors.New("unknown")) },
		} {
			if err := end(begin(key)); err != nil && !errors.Is(err, core.ErrOutcomeUnknown) {
				t.Fatal(key, err)
			}
		}
		if err := rdb.Set(ctx, "{reqlock:i:damaged}:r", "x", 0).Err(); err != nil {
			t.Fatal(err)
		}

		page := must(i.Records(ctx, inspect.Filter{}))(t)
		var got []string
		for _, r := range page.Records {
			got = append(got, fmt.Sprint(endpointKey(r), "=", r.State, " ", r.Number, " ", r.AnswerBytes > 0, " ", r.Process == processOf(running.Lease()), " ", r.First))
			if known, err := locks.ReadRecord(ctx, endpointKey(r)); err != nil || known.State != r.State || known.Attempt != r.Attempt || known.Number != r.Number || known.First != r.First ||
				(known.Retention-r.Retention).Abs() > time.Minute {
				t.Errorf("%+v, and core reads %+v, %v", r, known, err)
			}
		}
		want := "answered=answered 0 true true request 1, damaged=damaged 0 false false , done=done 0 false true request 1, " +
			"runs=running 1 false true request 1, unknown=unknown 1 false true request 1"
		if got := strings.Join(got, ", "); got != want || page.Truncated {
			t.Errorf("%s, want %s, %+v", got, want, page.Scan)
		}
		if text := fmt.Sprintf("%+v", page); strings.Contains(text, "secret") || strings.Contains(text, running.Lease().Token()) {
			t.Error("the list shows an answer or a token")
		}
		for want, filter := range map[string]inspect.Filter{
			"unknown":       {State: core.StateUnknown},
			"done":          {Match: "d*", Process: processOf(running.Lease())},
			"damaged, done": {Match: "d*"},
		} {
			got := must(i.Records(ctx, filter))(t).Records
			var keys []string
			for _, r := range got {
				keys = append(keys, endpointKey(r))
			}
			if strings.Join(keys, ", ") != want {
				t.Errorf("%+v: %q", filter, keys)
			}
		}
		if short := must(newInspector(t, rdb, inspect.WithLimit(2)).Records(ctx, inspect.Filter{}))(t); len(short.Records) != 2 || !short.Truncated {
			t.Errorf("a limit of 2: %+v", short)
		}
		for _, key := range []string{"aborted", "never", ""} {
			_, err := i.Record(ctx, key)
			wantError(t, err, core.ErrNotFound)
		}
	})
}

// endpointKey returns the key of the request.
func endpointKey(r inspect.Record) string {
	key, _ := r.Key.EndpointKey()
	return key
}

func TestResolveEndsTheAttemptThatWasSeen(t *testing.T) {
	t.Parallel()
	rdb := start(t).Client(t)
	locks, i := newLocker(t, rdb), newInspector(t, rdb, inspect.WithRetention(time.Hour))
	attempt := must(locks.Begin(t.Context(), "k", nil))(t)
	running := must(i.Record(t.Context(), "k"))(t)
	wantError(t, i.Resolve(t.Context(), running, core.Done()), core.ErrBusy)
	if err := attempt.Unknown(t.Context(), errors.New("unknown")); err != nil && !errors.Is(err, core.ErrOutcomeUnknown) {
		t.Fatal(err)
	}
	if err := rdb.PExpire(t.Context(), "{reqlock:i:k}:r", 40*time.Minute).Err(); err != nil { // as if it had died 20 minutes ago
		t.Fatal(err)
	}
	if age := must(i.Record(t.Context(), "k"))(t).Age; age < 20*time.Minute || age > 21*time.Minute {
		t.Errorf("the age is %v", age)
	}
	if err := i.Resolve(t.Context(), running, core.Done()); err != nil {
		t.Fatal(err)
	}
	record := must(i.Record(t.Context(), "k"))(t)
	if record.State != core.StateDone || record.First != "" || record.Retention > time.Hour || record.Retention < 59*time.Minute || record.Process != "" {
		t.Errorf("%+v", record)
	}
	wantError(t, i.Resolve(t.Context(), running, core.NotDone()), core.ErrChanged)
	if err := i.Resolve(t.Context(), inspect.Record{}, core.Done()); err == nil {
		t.Error("a record without a key is resolved")
	}
}

// The reference stays with the record that an operator has resolved. What another client has written in its
// place is left out.
func TestRecordHasReferenceOfItsAttempt(t *testing.T) {
	t.Parallel()
	rdb := start(t).Client(t)
	locks, i := newLocker(t, rdb, core.WithReference(func(context.Context) string { return "request 1" })), newInspector(t, rdb)
	attempt := must(locks.Begin(t.Context(), "k", nil))(t)
	_ = attempt.Unknown(t.Context(), nil)
	if err := i.Resolve(t.Context(), must(i.Record(t.Context(), "k"))(t), core.Done()); err != nil {
		t.Fatal(err)
	}
	if record := must(i.Record(t.Context(), "k"))(t); record.State != core.StateDone || record.First != "request 1" {
		t.Errorf("%+v", record)
	}
	const name = "{reqlock:i:k}:r"
	for _, bad := range []string{"\x1b[2J", strings.Repeat("a", 65), strings.Repeat("a", 300)} {
		storetest.ChangeRecord(t, rdb, name, map[string]string{"r": bad})
		if record := must(i.Record(t.Context(), "k"))(t); record.First != "" {
			t.Errorf("%q: %+v", bad, record)
		}
	}
}
