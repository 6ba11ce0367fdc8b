package main

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// resultsOf returns the results of doctor by their checks: the worst of each.
func resultsOf(t *testing.T, o operator, status int) map[string]finding {
	t.Helper()
	r := o.run(t, "doctor", "--json")
	if r.status != status {
		t.Fatalf("status %d, want %d\n%s%s", r.status, status, r.out, r.problems)
	}
	r.status = exitOK
	found := make(map[string]finding)
	for _, f := range lines[finding](t, r) {
		if found[f.Check].Result != fail {
			found[f.Check] = f
		}
	}
	return found
}

func TestDoctorFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	server, rdb, o := start(t)
	for check, f := range resultsOf(t, o, exitOK) {
		if f.Result != ok {
			t.Errorf("%s of a good Redis: %+v", check, f)
		}
	}
	o.run(t, "doctor").want(t, exitOK, "RESULT  CHECK", "ok      redis      ", "no clock difference", "no process reports a hold", "no outcome is unknown")

	lease := must(newLocker(t, rdb).Lock(t.Context(), "k"))(t)
	if err := rdb.Set(t.Context(), "reqlock:forever", "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	found := resultsOf(t, o, exitOK)
	if f := found["ttl"]; f.Result != warn || !strings.Contains(f.Detail, "1 lock has no TTL") || !strings.Contains(f.Detail, "forever") {
		t.Errorf("%+v", f)
	}
	if f := found["processes"]; f.Result != warn || !strings.Contains(f.Detail, "1 of the processes that hold leases or ran an unknown outcome is silent") || !strings.Contains(f.Detail, processOf(lease)[:8]) {
		t.Errorf("%+v", f)
	}
	register(t, rdb, processOf(lease), lockView{})
	found = resultsOf(t, o, exitOK)
	if f := found["processes"]; f.Result != ok || !strings.HasPrefix(f.Detail, "1 process is registered") {
		t.Errorf("%+v", f)
	}
	for n := range 3 {
		register(t, rdb, strings.Repeat("0", 31)+strconv.Itoa(n), lockView{})
	}
	limited := o.run(t, "doctor", "--limit=2").want(t, exitOK, "warn    scan")
	if strings.Contains(limited.out, "silent") {
		t.Errorf("a process that the list leaves out is silent:\n%s", limited.out)
	}
	if f := found["holds"]; f.Result != ok || !strings.HasPrefix(f.Detail, "the longest one known has lasted 1m") || !strings.HasSuffix(f.Detail, ": account, in process "+processOf(lease)[:8]) {
		t.Errorf("%+v", f)
	}
	attempt := must(newLocker(t, rdb).Begin(t.Context(), "pay", nil))(t)
	if err := attempt.Unknown(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	found = resultsOf(t, o, exitOK)
	if f := found["outcomes"]; f.Result != warn || !strings.HasPrefix(f.Detail, "1 outcome is unknown, ") {
		t.Errorf("%+v", f)
	}
	if f := found["processes"]; f.Result != warn || !strings.Contains(f.Detail, processOf(attempt.Lease())[:8]) {
		t.Errorf("%+v", f)
	}

	found = resultsOf(t, reader(t, server), exitError) // it may not lock
	for check, want := range map[string]string{"redis": ok, "clock": ok, "lock": fail, "scan": ok, "ttl": warn} {
		if f := found[check]; f.Result != want {
			t.Errorf("%s with the rights to read: %+v", check, f)
		}
	}
	if f := found["redis"]; !strings.Contains(f.Detail, "+info") {
		t.Errorf("%+v", f)
	}
	command := []any{"ACL", "SETUSER", "operator", "-scan"}
	if err := redistest.AdminClient(t, server.Addr()).Do(t.Context(), command...).Err(); err != nil {
		t.Fatal(err)
	}
	if f := resultsOf(t, operator{url: "redis://operator:a-password@" + server.Addr()}, exitError)["scan"]; f.Result != fail || !strings.Contains(f.Detail, "right") {
		t.Errorf("%+v", f)
	}
	server.Kill()
	if found := resultsOf(t, o, exitError); found["redis"].Result != fail || len(found) != 1 {
		t.Errorf("%+v", found)
	}
}

func TestAClockThatIsWrongIsFound(t *testing.T) {
	t.Parallel()
	for off, want := range map[time.Duration]string{0: ok, 900 * time.Millisecond: ok, -2 * time.Second: warn, time.Hour: warn} {
		if f := clockFinding(off); f.Result != want {
			t.Errorf("%v: %+v", off, f)
		}
	}
}
