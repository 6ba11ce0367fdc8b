package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// What an operator types leads to a page whose address has no key.
func TestAKeyIsFoundInEachSpelling(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	s, locks := newSite(t, rdb), newLocker(t, rdb)
	lease := must(locks.Lock(t.Context(), "account:jane"))(t)
	record := s.unknown(t, locks, "pay:jane")
	hex := strings.Repeat("ab", 16) // a key like the id of a process
	must(locks.Lock(t.Context(), hex))(t)
	lock := "?lock=" + s.lock(t, "account:jane").Key.String()
	attempt := "?attempt=" + record.Key.String()
	for typed, want := range map[string]string{
		hex:            "?lock=" + s.lock(t, hex).Key.String(),
		"account:jane": lock, "reqlock:account:jane": lock, lock[len("?lock="):]: lock,
		"pay:jane": attempt, "i:pay:jane": attempt, attempt[len("?attempt="):]: attempt,
		"key=" + lock[len("?lock="):]: lock, strings.ToUpper(lock[len("?lock="):]): lock, `endpoint_key="pay:jane"`: attempt,
		processOf(lease): "?process=" + processOf(lease), processOf(lease)[:8]: "?process=" + processOf(lease),
		"process=" + strings.ToUpper(processOf(lease)): "?process=" + processOf(lease),
		"jane": "", "0123456789ab": "", "": "", script: "", "0123": "",
	} {
		a := post(t, s, "", url.Values{"find": {" " + typed + " "}})
		if want == "" {
			a.want(t, http.StatusNotFound, "Nothing was found. No lock with this key is held or awaited")
			if has := strings.Contains(a.text(), "no process whose id begins"); has != strings.HasPrefix(typed, "0123") {
				t.Errorf("%q: %s", typed, a.text())
			}
			continue
		}
		if a.Code != http.StatusSeeOther || a.Header().Get("Location") != want {
			t.Errorf("%q leads to %q: %d", typed, a.Header().Get("Location"), a.Code)
		}
		get(t, s, a.Header().Get("Location")).want(t, http.StatusOK)
	}
}

// A page that an operator has found stays when its lock is free.
func TestThePageOfALockThatIsFreeStays(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	s, locks := newSite(t, rdb), newLocker(t, rdb)
	lease := must(locks.Lock(t.Context(), "k"))(t)
	attempt := must(locks.Begin(t.Context(), "pay", nil))(t)
	for key, query := range map[string]string{"k": "?lock=", "pay": "?attempt="} {
		digest := s.lock(t, key).Key.String()
		get(t, s, query+digest).want(t, http.StatusOK)
		want := "free: nobody holds it"
		if key == "k" {
			_ = lease.Release(t.Context())
		} else {
			want = "There is no record of this request"
			_ = attempt.Abort(t.Context())
		}
		suite.Eventually(t, "no list has it", func() bool { return !strings.Contains(get(t, s, "").text(), digest) })
		get(t, s, query+digest).want(t, http.StatusOK, want)
	}
	get(t, s, "?lock=0123456789ab").want(t, http.StatusNotFound, "Nobody holds a lock with this digest")
}

// A key may be spelled as the name in Redis of another lock.
func TestThePageIsThatOfTheRightLock(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	s := newSite(t, rdb)
	lease := must(newLocker(t, rdb).Lock(t.Context(), "k"))(t)
	digest := s.lock(t, "k").Key.String()
	other := must(newLocker(t, rdb).Lock(t.Context(), "reqlock:k"))(t)
	record := s.unknown(t, newLocker(t, rdb), "pay")
	must(newLocker(t, rdb).Begin(t.Context(), "reqlock:i:pay", nil))(t)
	get(t, s, "?lock="+digest).want(t, http.StatusOK, processOf(lease)[:8])
	get(t, s, "?lock="+s.lock(t, "reqlock:k").Key.String()).want(t, http.StatusOK, processOf(other)[:8])
	get(t, s, "?attempt="+record.Key.String()).want(t, http.StatusOK, "State unknown")
}
