package console_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/console"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/inspect"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// leaseOf returns the name of a lease, as the page has it.
func leaseOf(lock inspect.Lock, lease *core.Lease) string {
	for _, h := range lock.Holders {
		if h.Process == processOf(lease) {
			return string(h.Lease)
		}
	}
	return ""
}

// revocation returns the form that revokes the lease, as the page shows it now.
func revocation(lock inspect.Lock, lease *core.Lease) url.Values {
	return url.Values{"action": {"revoke"}, "lease": {leaseOf(lock, lease)}, "reason": {"the job hangs"}, "confirm": {"yes"}}
}

// resolution returns the form that resolves the request of the record.
func resolution(record inspect.Record, how string) url.Values {
	return url.Values{"resolution": {how}, "attempt": {record.Attempt.String()}, "reason": {"the charge is at the provider"}, "ended": {"yes"}}
}

func TestNobodyActsWithoutPermission(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	all := newSite(t, rdb)
	none := must(console.New(all.inspector))(t)
	some := must(console.New(all.inspector, console.WithActions(console.FreeNow), console.WithActor(func(*http.Request) string { return "ada" })))(t)
	nobody := newSite(t, rdb, console.WithActor(func(*http.Request) string { return "" }))
	locks := newLocker(t, rdb)
	lease := must(locks.Lock(t.Context(), "k"))(t)
	lock, record := all.lock(t, "k"), all.unknown(t, locks, "pay")
	revoke, resolve := revocation(lock, lease), resolution(record, "done")
	q, attempt := "?lock="+lock.Key.String(), "?attempt="+record.Key.String()
	const off, who, site = "This action is not allowed here", "It is not known who you are", "a page of another site"
	for _, test := range []struct {
		want string
		answer
	}{
		{off, post(t, none, q, revoke)},
		{off, post(t, none, attempt, resolve)},
		{off, post(t, some, q, revoke)},
		{off, post(t, all, q, without(revoke, "action"))},
		{off, post(t, all, q, without(revoke, "action", "resolve"))},
		{who, post(t, nobody, q, revoke)},
		{who, post(t, nobody, attempt, resolve)},
		{site, post(t, all, q, revoke, "Sec-Fetch-Site", "cross-site")},
		{site, post(t, all, attempt, resolve, "Sec-Fetch-Site", "same-site")},
		{site, post(t, all, q, revoke, "Origin", "https://evil.example")}, // of an old browser
	} {
		test.answer.want(t, http.StatusForbidden, test.want)
	}
	for name, a := range map[string]answer{"lock": get(t, none, q), "attempt": get(t, none, attempt), "nobody": get(t, nobody, q)} {
		if a.Code != http.StatusOK || strings.Contains(a.text(), "You act as") {
			t.Errorf("%s: the page has a form for an action: %s", name, a.text())
		}
	}
	if now := all.lock(t, "k"); now.Holders[0].Lease != lock.Holders[0].Lease || len(all.changes) != 0 {
		t.Errorf("something was done: %+v, %+v", now, all.changes)
	}
}

func TestAFormWithAFaultDoesNothing(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	s, locks := newSite(t, rdb), newLocker(t, rdb)
	lease := must(locks.Lock(t.Context(), "k"))(t)
	lock, record := s.lock(t, "k"), s.unknown(t, locks, "pay")
	revoke, resolve := revocation(lock, lease), resolution(record, "done")
	free := without(without(revoke, "action", "free_now"), "confirm", lock.Key.String())
	for _, test := range []struct {
		form  url.Values
		field string
		value string
		want  string
	}{
		{revoke, "reason", " ", "the reason is missing"},
		{revoke, "reason", strings.Repeat("x", 501), "more than 500 bytes"},
		{revoke, "reason", "a\nb", "control characters"},
		{resolve, "reason", "a\xff", "not UTF-8"},
		{revoke, "confirm", "", "confirm that the lease is to end"},
		{free, "confirm", "yes", "to free the lock at once, type its digest, " + lock.Key.String()},
		{free, "reason", "", "the reason is missing"},
		{resolve, "reason", "", "the reason is missing"},
		{resolve, "resolution", "answered", "choose whether"},
		{without(resolve, "resolution", "not_done"), "ended", "", "only for a request whose handler has ended"},
	} {
		query := "?lock=" + lock.Key.String()
		if test.form.Has("attempt") {
			query = "?attempt=" + record.Key.String()
		}
		a := post(t, s, query, without(test.form, test.field, test.value))
		a.want(t, http.StatusBadRequest, "Nothing was done: ", test.want)
		if test.field != "reason" && !strings.Contains(a.Body.String(), `value="`+test.form.Get("reason")+`"`) {
			t.Error("the page has lost the reason that was typed")
		}
	}
	post(t, s, "?lock="+lock.Key.String(), without(revoke, "lease")).want(t, http.StatusBadRequest, "no lease is chosen")
	post(t, s, "?lock="+lock.Key.String(), without(revoke, "reason", strings.Repeat("x", 1<<20))).want(t, http.StatusBadRequest, "cannot be read")
	if now := s.lock(t, "k"); now.Holders[0].Lease != lock.Holders[0].Lease || len(s.changes) != 0 {
		t.Errorf("something was done: %+v, %+v", now, s.changes)
	}
}

func TestLeasesEnd(t *testing.T) {
	t.Parallel()
	for action, kind := range map[string]console.ActionKind{"revoke": console.Revoke, "free_now": console.FreeNow} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			rdb := redistest.Reuse(t).Client(t)
			s := newSite(t, rdb)
			lease := must(newLocker(t, rdb, core.WithTTL(3*time.Second)).Lock(t.Context(), "k"))(t)
			next := s.wait(t, newLocker(t, rdb), "k")
			lock := s.lock(t, "k")
			form := without(revocation(lock, lease), "action", action)
			if kind == console.FreeNow {
				form.Set("confirm", " "+strings.ToUpper(lock.Key.String()))
			}
			a := post(t, s, "?lock="+lock.Key.String(), form, "Sec-Fetch-Site", "same-origin")
			if want := "?did=" + action + "&ended=" + leaseOf(lock, lease) + "&lock=" + lock.Key.String(); a.Code != http.StatusSeeOther || a.Header().Get("Location") != want {
				t.Fatalf("%d, %s: %s", a.Code, a.Header().Get("Location"), a.text())
			}
			get(t, s, a.Header().Get("Location")).want(t, http.StatusOK, map[console.ActionKind]string{
				console.Revoke: "A lease is revoked.", console.FreeNow: "The lease " + leaseOf(lock, lease)[:8] + " is no longer out. If its holder still runs, it may act beside the next holder",
			}[kind])
			suite.AwaitClosed(t, "the holder is told", lease.Context().Done())
			now := suite.Receive(t, "the next holder has the lock", next)
			if kind == console.Revoke && strings.Contains(get(t, s, a.Header().Get("Location")).text(), "is revoked") {
				t.Error("a page of the next holder says that its lease is revoked")
			}
			_ = now.Release(t.Context())

			if len(s.changes) != 1 {
				t.Fatalf("%+v", s.changes)
			}
			e := s.changes[0]
			want := core.Change{By: "ada", Why: "the job hangs", Before: "held by process " + processOf(lease) + ", lease " + leaseOf(lock, lease)}
			want.After = map[console.ActionKind]string{console.Revoke: "revoked", console.FreeNow: "granted to a waiter"}[kind]
			if e.Kind != map[console.ActionKind]core.EventKind{console.Revoke: core.OperatorRevoked, console.FreeNow: core.OperatorFreed}[kind] || e.Key.Raw() != "k" || e.Err != nil || *e.Change != want {
				t.Errorf("%+v, %+v", e, e.Change)
			}
		})
	}
}

// A lock whose lease is revoked says when the next holder gets it, and offers no second revocation.
func TestALockSaysWhatFreeingItAtOnceRisks(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	s := newSite(t, rdb)
	lease := must(newLocker(t, rdb).Lock(t.Context(), "k"))(t)
	lock := s.lock(t, "k")
	digest := lock.Key.String()
	get(t, s, "?lock="+digest).want(t, http.StatusOK, "State held", "Its process is silent: it has no record. If it still runs, two holders will run at once.")
	register(t, rdb, processOf(lease), "payments", []string{digest}, nil)
	a := get(t, s, "?lock="+digest)
	a.want(t, http.StatusOK, "Its process wrote its record ", " ago. Unless it has died since, two holders will run at once.")
	get(t, s, "?fragment&lock="+digest).want(t, http.StatusOK, "Unless it has died since")
	post(t, s, "?lock="+digest, revocation(lock, lease))
	a = get(t, s, "?lock="+digest)
	a.want(t, http.StatusOK, "State revoked: the next holder gets it in ", "The old holder may still run. Wait ", " instead.")
	if strings.Contains(a.Body.String(), `value="revoke"`) {
		t.Error("the page offers to revoke a lease that is revoked")
	}
}

// Of several permits, only the chosen leases end.
func TestOnlyTheChosenLeasesEnd(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	s, permits := newSite(t, rdb), core.WithPermits(3)
	one := must(newLocker(t, rdb, permits, core.WithTTL(3*time.Second)).Lock(t.Context(), "k"))(t)
	other := must(newLocker(t, rdb, permits).Lock(t.Context(), "k"))(t)
	lock := s.lock(t, "k")
	digest := lock.Key.String()
	page := get(t, s, "?lock="+digest)
	page.want(t, http.StatusOK, leaseOf(lock, one)[:8]+" of process "+processOf(one)[:8])
	ids := []string{leaseOf(lock, one), leaseOf(lock, other)}
	slices.Sort(ids) // in Redis their order changes with each renewal, and the page would say that its form is stale
	if !strings.Contains(page.Body.String(), `data-leases="`+strings.Join(ids, " ")+`"`) {
		t.Error("the page has not the leases in their order")
	}
	if a := post(t, s, "?lock="+digest, revocation(lock, one)); a.Code != http.StatusSeeOther {
		t.Fatal(a.text())
	}
	suite.AwaitClosed(t, "the holder is told", one.Context().Done())
	if now := s.lock(t, "k"); leaseOf(now, one) != "" || leaseOf(now, other) != leaseOf(lock, other) {
		t.Errorf("%+v", now)
	}
	// One of the two is gone: a form with both does nothing.
	both := without(revocation(lock, one), "lease", leaseOf(lock, one), leaseOf(lock, other))
	post(t, s, "?lock="+digest, both).want(t, http.StatusConflict, "Nothing was done. A lease that you chose has ended since you opened the form.")
	if other.Context().Err() != nil {
		t.Error("the other lease has ended")
	}
}

func TestARequestIsResolved(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	s, locks := newSite(t, rdb), newLocker(t, rdb)
	for how, want := range map[string]string{"done": "State done", "not_done": "There is no record of this request"} {
		record := s.unknown(t, locks, how)
		a := post(t, s, "?attempt="+record.Key.String(), resolution(record, how))
		if a.Code != http.StatusSeeOther {
			t.Fatal(a.text())
		}
		get(t, s, a.Header().Get("Location")).want(t, http.StatusOK, map[string]string{"done": "The request is done. Copies do not run.", "not_done": "There is no record of the request any more. The next copy runs."}[how], want)
		e := s.changes[len(s.changes)-1]
		after := map[string]string{"done": "done", "not_done": "no record"}[how]
		want := core.Change{By: "ada", Why: "the charge is at the provider", Before: "unknown", After: after}
		if e.Kind != core.OperatorResolved || e.Key.Raw() != "i:"+how || e.Attempt != record.Attempt || e.Err != nil || *e.Change != want {
			t.Errorf("%+v, %+v", e, e.Change)
		}
	}
}

// A name that the middleware in front has found out may forge no line of a log either.
func TestAnActorWithControlCharactersDoesNothing(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	s := newSite(t, rdb, console.WithActor(func(*http.Request) string { return "ada\nlevel=INFO" }))
	lease := must(newLocker(t, rdb).Lock(t.Context(), "k"))(t)
	lock := s.lock(t, "k")
	post(t, s, "?lock="+lock.Key.String(), revocation(lock, lease)).want(t, http.StatusBadRequest, "Nothing was done: the name (by) has control characters")
	if lease.Context().Err() != nil || len(s.changes) != 0 {
		t.Errorf("%+v", s.changes)
	}
}
