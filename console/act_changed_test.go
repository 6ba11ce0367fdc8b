package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// An address cannot say that something was done.
func TestAnAddressDoesNotSayWhatWasDone(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	s, locks := newSite(t, rdb), newLocker(t, rdb)
	lease := must(locks.Lock(t.Context(), "k"))(t)
	lock, record := s.lock(t, "k"), s.unknown(t, locks, "pay")
	digest := lock.Key.String()
	for _, query := range []string{
		"?did=done&attempt=" + record.Key.String(), "?did=not_done&attempt=" + record.Key.String(), "?did=revoke&lock=" + digest,
		"?did=free_now&lock=" + digest, "?did=free_now&ended=" + leaseOf(lock, lease) + "&lock=" + digest, "?did=free_now&ended=" + script + "&lock=" + digest,
	} {
		a := get(t, s, query)
		a.want(t, http.StatusOK)
		if strings.Contains(a.Body.String(), `<p class="notice">`) || strings.Contains(a.text(), "no longer out") {
			t.Errorf("%s: %s", query, a.text())
		}
	}
}

// The lease of another program has no form, because no action ends it.
func TestNoFormEndsTheLeaseOfAnotherProgram(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	s, locks := newSite(t, rdb), newLocker(t, rdb)
	if err := rdb.Set(t.Context(), "reqlock:theirs", "x", time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	running, record := must(locks.Begin(t.Context(), "running", nil))(t), s.unknown(t, locks, "damaged")
	theirs, attempt, damaged := s.lock(t, "theirs").Key.String(), s.lock(t, "running").Key.String(), record.Key.String()
	get(t, s, "?attempt="+damaged).want(t, http.StatusOK)
	storetest.ChangeRecord(t, rdb, "{reqlock:i:damaged}:r", map[string]string{"f": ""})
	for query, text := range map[string]string{"?lock=" + theirs: "another program", "?lock=" + attempt: "of an idempotent request", "?attempt=" + attempt: "State running"} {
		a := get(t, s, query)
		a.want(t, http.StatusOK, text)
		if strings.Contains(a.text(), "You act as") {
			t.Errorf("%s: the page has a form: %s", query, a.text())
		}
	}
	get(t, s, "?attempt="+damaged).want(t, http.StatusOK, "State damaged", "You act as")
	get(t, s, "?process="+processOf(running.Lease())).want(t, http.StatusOK, "silent", "Locks that it holds", attempt)
	if err := running.Abort(t.Context()); err != nil {
		t.Error(err)
	}
}

// An action compares what there is with what the page has shown.
func TestAStaleFormDoesNothing(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	s, locks, other := newSite(t, rdb), newLocker(t, rdb), newLocker(t, rdb)
	lease := must(locks.Lock(t.Context(), "k"))(t)
	lock, record := s.lock(t, "k"), s.unknown(t, locks, "pay")
	stale, form, q := revocation(lock, lease), resolution(record, "done"), "?lock="+lock.Key.String()
	get(t, s, q)

	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	post(t, s, q, stale).want(t, http.StatusConflict, "Nothing was done. The lease has ended since you opened the form.", "free: nobody holds it")
	now := must(other.Lock(t.Context(), "k"))(t)
	a := post(t, s, q, stale)
	a.want(t, http.StatusConflict, "The lock has a new holder since you opened the form.", processOf(now)[:8])
	if body := a.Body.String(); strings.Count(body, "the job hangs") != 1 || !strings.Contains(body, `id="reason-revoke" name="reason" required maxlength="500" value="the job hangs"`) {
		t.Error("the reason is not, or not only, in the form that was sent")
	}
	free := without(without(stale, "action", "free_now"), "confirm", lock.Key.String())
	post(t, s, q, free).want(t, http.StatusConflict)

	again := without(form, "attempt", strings.Repeat("0", 40))
	post(t, s, "?attempt="+record.Key.String(), again).want(t, http.StatusConflict, "The request has changed since you opened the form.", "State unknown")
	if a := post(t, s, "?attempt="+record.Key.String(), form); a.Code != http.StatusSeeOther {
		t.Error(a.text())
	}
	post(t, s, "?attempt="+record.Key.String(), form).want(t, http.StatusConflict, "The request has changed", "State done")
	running := must(locks.Begin(t.Context(), "running", nil))(t)
	busy := s.lock(t, "running")
	post(t, s, "?lock="+busy.Key.String(), revocation(busy, running.Lease())).want(t, http.StatusConflict, "Nothing was done. The lock is that of an idempotent request", "What became of the request")

	if len(s.changes) != 1 || s.changes[0].Kind != core.OperatorResolved || now.Context().Err() != nil {
		t.Errorf("%+v", s.changes)
	}
	if err := running.Abort(t.Context()); err != nil {
		t.Error(err)
	}
}

// Of two operators who act at once, one is told that there is nothing left to do.
func TestTwoOperatorsAtOnce(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	sites, locks := []*site{newSite(t, rdb), newSite(t, rdb)}, newLocker(t, rdb)
	for round := range suite.Size(10, 100) {
		key, payment := fmt.Sprint("k", round), fmt.Sprint("pay", round)
		lease := must(locks.Lock(t.Context(), key))(t)
		lock, record := sites[0].lock(t, key), sites[0].unknown(t, locks, payment)
		for _, s := range sites { // they have both pages before them
			post(t, s, "", url.Values{"find": {key}})
			post(t, s, "", url.Values{"find": {payment}})
		}
		for query, forms := range map[string][2]url.Values{
			"?lock=" + lock.Key.String():      {revocation(lock, lease), revocation(lock, lease)},
			"?attempt=" + record.Key.String(): {resolution(record, "done"), resolution(record, "not_done")},
		} {
			var codes [2]int
			var operators sync.WaitGroup
			for n, s := range sites {
				operators.Go(func() { codes[n] = post(t, s, query, forms[n]).Code })
			}
			operators.Wait()
			if codes != [2]int{http.StatusSeeOther, http.StatusConflict} && codes != [2]int{http.StatusConflict, http.StatusSeeOther} {
				t.Errorf("%s: %d", query, codes)
			}
		}
	}
}
