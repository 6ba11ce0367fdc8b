package sidebyside

import (
	"errors"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	pb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/inspect"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/subprocess"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/nethttplock"
)

// Each case is what the second process makes of a request of the first one.
var cases = map[string]func(s *scenario){
	"a lock excludes":                     func(s *scenario) { excluded(s, "/lock", "/lock") },
	"a shared lease excludes a lock":      func(s *scenario) { excluded(s, "/shared", "/lock") },
	"a lock excludes a shared lease":      func(s *scenario) { excluded(s, "/lock", "/shared") },
	"a running request excludes its copy": func(s *scenario) { excluded(s, "/pay", "/pay") },
	"a waiter gets the lock": func(s *scenario) {
		release := s.hold(s.first, "/lock")
		granted := s.start(s.second, "/wait", "", "")
		s.await(s.second, "waiting")
		release()
		granted("201")
	},
	"a waiter gets the lock behind a ticket": behindTickets,
	"permits count":                          func(s *scenario) { overlapping(s, "/permits", "/permits") },
	"shared leases overlap":                  func(s *scenario) { overlapping(s, "/shared", "/lock") },
	"an answer is replayed":                  func(s *scenario) { replayed(s, "/pay?x=1", "twelve", "twelve", "201", "422 mismatch") },
	"an answer of gRPC is replayed":          func(s *scenario) { replayed(s, "gRPC", "twelve", "twelve", "OK", "FailedPrecondition") },
	"an answer to a form is replayed": func(s *scenario) {
		form := "--b\r\nContent-Disposition: form-data; name=a\r\n\r\ntwelve\r\n--b--\r\n"
		replayed(s, "/pay", form, strings.ReplaceAll(form, "--b", "--c"), "201", "422 mismatch")
	},
	"an unknown outcome becomes an answer": func(s *scenario) {
		answer, err := nethttplock.NewAnswer(http.StatusAccepted, http.Header{"Location": {"/2"}}, []byte("found\x00"))
		if err != nil {
			s.Fatal(err)
		}
		unknown(s, core.Answered(answer), "202 replayed")
	},
	"an unknown outcome becomes done":     func(s *scenario) { unknown(s, core.Done(), "409 completed_unreplayable") },
	"an unknown outcome becomes not done": func(s *scenario) { unknown(s, core.NotDone(), "201") },
	"fencing numbers rise": func(s *scenario) {
		const each = 3
		for range each {
			s.send(s.first, "/fenced", "", "201")
			s.send(s.second, "/fenced", "", "201")
		}
		var numbers []int64
		err := s.rdb.LRange(s.Context(), "fences of "+s.account, 0, -1).ScanSlice(&numbers)
		if err != nil || len(numbers) != 2*each || numbers[0] == 0 || !slices.IsSorted(numbers) || len(slices.Compact(slices.Clone(numbers))) != 2*each {
			s.Errorf("%d, %v", numbers, err)
		}
	},
	"a lock is kept after its release": func(s *scenario) {
		s.send(s.first, "/kept", "", "201")
		s.send(s.second, "/lock", "", "409 busy")
		s.delete("reqlock:account:" + s.account)
		s.send(s.second, "/lock", "", "201")
	},
	"a lost record is stored again": func(s *scenario) {
		release := s.hold(s.first, "/pay")
		s.delete("{reqlock:i:" + s.keyOfPayment() + "}:r")
		release()
		s.await(s.first, "restored")
		s.send(s.second, "/pay", "", "201 replayed")
	},
}

// Each case of newCases is about something that only this tree has: first is its process, and second the old one.
var newCases = map[string]func(s *scenario){
	"a record of another form": otherForms,
	"a sealed answer is not replayed": func(s *scenario) {
		stored := s.send(s.first, "/sealed", "twelve", "201")
		s.send(s.second, "/sealed", "twelve", "409 completed_unreplayable")
		s.send(s.second, "/sealed", "thirteen", "422 mismatch")
		if again := s.send(s.first, "/sealed", "twelve", "201 replayed"); again != stored {
			s.Errorf("%s, and the copy got %s", stored, again)
		}
	},
	"an unsealed answer is replayed by a process that seals": func(s *scenario) {
		s.send(s.second, "/sealed", "twelve", "201")
		s.send(s.first, "/sealed", "twelve", "201 replayed")
	},
	"an answer that is not stored is not replayed": func(s *scenario) {
		s.send(s.first, "/once", "twelve", "201")
		s.send(s.second, "/once", "twelve", "409 completed_unreplayable")
	},
	"a detached lease excludes": func(s *scenario) {
		s.start(s.first, "/detached", "", s.account)("202")
		s.send(s.second, "/lock", "", "409 busy")
		granted := s.start(s.second, "/wait", "", "")
		s.await(s.second, "waiting")
		s.rdb.RPush(s.Context(), s.account, "")
		granted("201")
	},
	"an operator revokes a lease": func(s *scenario) {
		end := s.start(s.second, "/lock", "", s.account)
		s.await(s.second, "acquired")
		operator, err := inspect.New(s.rdb)
		if err != nil {
			s.Fatal(err)
		}
		lock, err := operator.Lock(s.Context(), "account:"+s.account)
		if err := errors.Join(err, operator.Revoke(s.Context(), lock)); err != nil {
			s.Fatal(err)
		}
		s.send(s.first, "/lock", "", "409 busy")
		s.await(s.second, "lost") // at its next renewal
		s.rdb.RPush(s.Context(), s.account, "")
		end("201") // the handler has gone on
	},
}

// behindTickets is the case of waiters behind a lease that this tree hands over: by a ticket that is accepted, and by one that is
// not.
func behindTickets(s *scenario) {
	locks := s.newLocker(core.WithFencing(true))
	r, _ := http.NewRequestWithContext(s.Context(), http.MethodPost, "/wait", http.NoBody)
	r.Header.Set("X-Account", s.account)
	key, err := account.Read(r)
	for accepts, waiter := range map[bool]*subprocess.Process{true: s.first, false: s.second} {
		lease, failed := locks.Lock(s.Context(), key.Raw())
		if err := errors.Join(err, failed); err != nil {
			s.Fatal(err)
		}
		granted := s.start(waiter, "/wait", "", "")
		s.await(waiter, "waiting")
		ticket, err := lease.Handover(s.Context(), 3*time.Second)
		if err == nil && accepts {
			lease, err = locks.Accept(s.Context(), ticket)
			err = errors.Join(err, lease.Release(s.Context()))
		}
		if err != nil {
			s.Fatal(err)
		}
		granted("201")
	}
	if err := locks.Close(s.Context()); err != nil {
		s.Error(err)
	}
}

// excluded is the case of a request that is refused while another one runs.
func excluded(s *scenario, path, refused string) {
	s.Helper()
	release := s.hold(s.first, path)
	s.send(s.second, refused, "", "409 busy")
	release()
	s.send(s.second, "/lock", "", "201")
}

// overlapping is the case of two requests at a time, which leave room for a third one on their path only when one ends.
func overlapping(s *scenario, path, refused string) {
	s.Helper()
	release, releaseOther := s.hold(s.first, path), s.hold(s.second, path)
	s.send(s.first, refused, "", "409 busy")
	s.send(s.second, refused, "", "409 busy")
	release()
	s.send(s.second, path, "", "201")
	releaseOther()
}

// replayed is the case of a request, its copy, and another request with its key.
func replayed(s *scenario, path, body, copied, ok, mismatch string) {
	s.Helper()
	stored := s.send(s.first, path, body, ok)
	if again := s.send(s.second, path, copied, ok+" replayed"); again != stored {
		s.Errorf("%s, and the copy got %s", stored, again)
	}
	s.send(s.second, path, strings.Replace(body, "twelve", "thirteen", 1), mismatch)
	s.wantFirst(path, s.first)
}

// wantFirst fails the test unless the record has the reference of this process, which only one of this tree notes.
func (s *scenario) wantFirst(path string, by *subprocess.Process) {
	s.Helper()
	method, route, want := http.MethodPost, "POST /pay", ""
	if path == "gRPC" {
		method, route = "", pb.TestService_UnaryCall_FullMethodName
	}
	if by == s.now {
		want = s.account
	}
	s.turn(s.now)
	key, err := core.EndpointKey(method, route, s.account, "k")
	locks := s.newLocker()
	record, err2 := locks.ReadRecord(s.Context(), key)
	if err := errors.Join(err, err2, locks.Close(s.Context())); err != nil || record.First != want {
		s.Errorf("record %+v, %v; want the reference %q", record, err, want)
	}
}

// unknown is the case of a handler that does not know the outcome, until the operator resolves it.
func unknown(s *scenario, resolution core.Resolution, want string) {
	s.Helper()
	s.send(s.first, "/pay", "unknown", "201")
	s.send(s.second, "/pay", "unknown", "409 outcome_unknown")
	s.wantFirst("/pay", s.first)
	key, err := core.EndpointKey(http.MethodPost, "POST /pay", s.account, "k")
	locks := s.newLocker()
	record, err2 := locks.ReadRecord(s.Context(), key)
	if err := errors.Join(err, err2); err != nil || record.State != core.StateUnknown {
		s.Fatalf("record %+v, %v", record, err)
	}
	if err := errors.Join(locks.Resolve(s.Context(), key, resolution, record.Attempt), locks.Close(s.Context())); err != nil {
		s.Fatal(err)
	}
	s.send(s.second, "/pay", "unknown", want)
	last := s.first
	if want == "201" { // a copy has run
		last = s.second
	}
	s.wantFirst("/pay", last)
}

// caseName finds the names of cases in the last column of a table.
var caseName = regexp.MustCompile("`([^`]+)`")

// Each row of docs/compatibility.md about a key in Redis names the cases that play it, and each case is named.
func TestThePageNamesEachCase(t *testing.T) {
	page, err := os.ReadFile("../../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	named := make(map[string]bool)
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) < 3 {
			continue
		}
		for _, match := range caseName.FindAllStringSubmatch(cells[len(cells)-1], -1) {
			named[match[1]] = true
			if cases[match[1]] == nil && newCases[match[1]] == nil {
				t.Errorf("docs/compatibility.md names the case %q, which does not exist", match[1])
			}
		}
	}
	for _, all := range []map[string]func(*scenario){cases, newCases} {
		for name := range all {
			if !named[name] {
				t.Errorf("docs/compatibility.md does not name the case %q", name)
			}
		}
	}
}

func TestOldAndNewProcessesShareRedis(t *testing.T) {
	suite.Full(t, "compiles the tree of another commit")
	binary, server := buildOld(t), redistest.Start(t)
	old := serving(t, subprocess.StartOf(t, binary, "TestService", server.Addr()))
	now := serving(t, subprocess.Start(t, "TestService", server.Addr()))
	ran := map[string][2]*scenario{} // the old process is first, and second
	for name, run := range cases {
		ran[name] = [2]*scenario{{first: old, second: now, now: now}, {first: now, second: old, now: now}}
		for i, order := range []string{"old", "new"} {
			t.Run(name+"/"+order+" first", func(t *testing.T) {
				s := ran[name][i]
				s.T, s.rdb, s.account = t, server.Client(t), order+strings.ReplaceAll(name, " ", "-")
				run(s)
			})
		}
	}
	for name, run := range newCases {
		t.Run(name+"/new first", func(t *testing.T) {
			run(&scenario{T: t, first: now, second: old, now: now, rdb: server.Client(t), account: "only" + strings.ReplaceAll(name, " ", "-")})
		})
	}
	if err := errors.Join(old.Stop(), now.Stop()); err != nil { // no event follows
		t.Error(err)
	}
	for name, s := range ran {
		if a, b := s[0].withEvents(), s[1].withEvents(); len(a) > 0 && len(b) > 0 && !slices.Equal(a, b) { // -run may select one order
			t.Errorf("%s: old first %q\nnew first %q", name, a, b)
		}
	}
}
