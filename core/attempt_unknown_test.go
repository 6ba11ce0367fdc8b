package core_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// Each outcome that becomes unknown is reported, and copies do not repeat it for ever.
func testUnknownOutcomesAreReported(t *testing.T, servers *deployment) {
	var first, second recorder
	one := servers.newLocker(t, servers.Client(t), core.WithObserver(first.record))
	two := servers.newLocker(t, servers.Client(t), core.WithObserver(second.record))
	key := adapter.Must(core.EndpointKey("POST", "/payments", "k"))
	noError(t, begin(t, one, key).Unknown(t.Context(), nil))
	if got := first.of(core.OutcomeUnknown); len(got) != 1 || got[0].Held <= 0 || textOf(got[0].Err) != "reqlock: the attempt was ended by Unknown" {
		t.Errorf("after Unknown: %+v", got)
	}
	reported := func() int {
		all := append(first.of(core.OutcomeUnknown), second.of(core.OutcomeUnknown)...)
		for _, event := range all {
			if endpoint, ok := event.Key.EndpointKey(); endpoint != key || !ok {
				t.Errorf("endpoint %q, %t, want %q", endpoint, ok, key)
			}
		}
		return len(all)
	}
	copies := func() {
		for _, locks := range []*core.Locker{one, two, one, two} {
			wantError(t, errorOf(locks.Begin(t.Context(), key, []byte("f"))), core.ErrOutcomeUnknown)
		}
	}
	copies()
	// The report of a copy is noted after the copy was answered.
	suite.Eventually(t, "the record notes a report", func() bool {
		return storetest.RecordAt(t, servers.Client(t), servers.companion("i:"+key, "r"))["u"] != ""
	})
	copies()
	copies()
	for _, locks := range []*core.Locker{one, two} {
		noError(t, locks.Close(t.Context())) // waits for reports under way
	}
	for _, event := range append(first.of(core.OutcomeUnknown)[1:], second.of(core.OutcomeUnknown)...) {
		if event.Held != 0 || textOf(event.Err) != "reqlock: an earlier attempt died or ended unknown" {
			t.Errorf("by a copy: %+v", event)
		}
	}
	if got := reported(); got < 1 || got > 5 { // Unknown, and the four copies before the note at most
		t.Errorf("%d reports", got)
	}
}

// textOf returns the text of an error, or "" if there is none.
func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// The event of an attempt that Unknown ended has its cause. A run of WithRerunUnknown is
// reported as the copy of an attempt that died.
func TestUnknownOutcomeHasItsCause(t *testing.T) {
	t.Parallel()
	locks, events := observed(t, newEmbedded(t), core.WithRerunUnknown(true))
	panicked := errors.New("reqlock: the handler panicked")
	a := begin(t, locks, "k")
	noError(t, a.Unknown(t.Context(), panicked))
	_ = a.Unknown(t.Context(), errors.New("later")) // does nothing
	again := begin(t, locks, "k")
	noError(t, again.Unknown(t.Context(), nil))
	var texts []string
	for _, event := range events.of(core.OutcomeUnknown) {
		texts = append(texts, textOf(event.Err))
	}
	want := []string{panicked.Error(), "reqlock: an earlier attempt died or ended unknown", "reqlock: the attempt was ended by Unknown"}
	if !slices.Equal(texts, want) {
		t.Errorf("got %q, want %q", texts, want)
	}
}

// A commit that Redis does not accept is an unknown outcome at once.
func TestFailedCommitIsReportedAsUnknown(t *testing.T) {
	t.Parallel()
	for opens, text := range map[int]string{
		0: "reqlock: the commit failed: redis unavailable: ",
		1: "reqlock: the commit has failed so far, and goes on: redis unavailable: ",
	} {
		t.Run(fmt.Sprint(opens), func(t *testing.T) {
			t.Parallel()
			_, proxy, rdb := behindProxy(t)
			locks, events := observed(t, rdb, core.WithOpenCommits(opens, 100))
			a := begin(t, locks, "k")
			proxy.Refuse(true)
			defer proxy.Refuse(false)
			wantError(t, a.Commit(t.Context(), []byte("answer")), core.ErrUnavailable)
			if got := events.of(core.OutcomeUnknown); len(got) != 1 || !errors.Is(got[0].Err, core.ErrUnavailable) || got[0].Held <= 0 ||
				!strings.HasPrefix(textOf(got[0].Err), text) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// If the key is a digest, the log line of an unknown outcome has it, and ReadRecord and Resolve
// take it.
func TestLogLineOfUnknownOutcomeLeadsToResolve(t *testing.T) {
	t.Parallel()
	var log logBuffer
	locks, events := observed(t, newEmbedded(t), withoutResend(log.all()...)...)
	noError(t, begin(t, locks, adapter.Must(core.EndpointKey("POST", "/payments", "ada"))).Unknown(t.Context(), nil))
	line := log.String()
	if strings.Count(line, "level=WARN") != 1 || !strings.Contains(line, `msg="lock outcome_unknown"`) || !strings.Contains(line, " held=") {
		t.Errorf("logged %s", line)
	}
	_, rest, _ := strings.Cut(line, " endpoint_key=")
	key, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	record, err := locks.ReadRecord(t.Context(), key)
	if err != nil || record.State != core.StateUnknown {
		t.Errorf("the record of %q is %+v, %v", key, record, err)
	}
	noError(t, locks.Resolve(t.Context(), key, core.Done(), record.Attempt))

	for _, secret := range []string{"DE02 secret", strings.Repeat("-", 42), strings.Repeat("x", 44), ""} {
		log.Reset()
		if secret != "" {
			noError(t, begin(t, locks, secret).Unknown(t.Context(), nil))
		} else {
			release(t, lock(t, locks, adapter.Must(core.EndpointKey("POST", "/payments", "lock"))))
			all := events.of(core.Released)
			if endpoint, ok := all[len(all)-1].Key.EndpointKey(); ok || endpoint != "" {
				t.Errorf("a lock has the endpoint %q", endpoint)
			}
			continue
		}
		if line := log.String(); strings.Contains(line, "endpoint_key") || strings.Contains(line, secret) || !strings.Contains(line, "outcome_unknown") {
			t.Errorf("logged %s", line)
		}
	}
}
