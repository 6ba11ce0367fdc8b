package inspect_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/inspect"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// rulesOf returns the ACL rules of docs/inspect.md: to read, to act, and to read only processes.
func rulesOf(t *testing.T) (read, act, processes []string) {
	t.Helper()
	page := must(os.ReadFile("../docs/inspect.md"))(t)
	var rules [][]string
	for line := range strings.Lines(string(page)) {
		if rule, isRule := strings.CutPrefix(line, "ACL SETUSER operator "); isRule {
			rules = append(rules, slices.DeleteFunc(strings.Fields(rule), func(word string) bool { return word == "on" || strings.HasPrefix(word, ">") }))
		}
	}
	if len(rules) != 2 {
		t.Fatalf("docs/inspect.md has %d rules", len(rules))
	}
	_, rest, _ := strings.Cut(string(page), "`Processes` needs only `")
	rule, _, _ := strings.Cut(rest, "`")
	return rules[0], rules[1], strings.Fields(rule)
}

// userClient returns a client of a new user with the rules.
func userClient(t *testing.T, server *redistest.Server, name string, rules ...string) redis.UniversalClient {
	t.Helper()
	command := []any{"ACL", "SETUSER", name, "on", "nopass"}
	for _, rule := range rules {
		command = append(command, rule)
	}
	if err := redistest.AdminClient(t, server.Addr()).Do(t.Context(), command...).Err(); err != nil {
		t.Fatal(err)
	}
	return server.Client(t, func(o *redis.Options) { o.Username, o.Password = name, "any" })
}

func TestTheRightsOfThePageAreEnoughAndNotTooMany(t *testing.T) {
	t.Parallel()
	read, act, processes := rulesOf(t)
	both := slices.Concat(read, act)
	server := redistest.Start(t)
	server.Grant(redistest.InstanceRight)
	locks := newLocker(t, server.Client(t), core.WithTTL(time.Minute), core.WithInstance(core.Instance{}))

	must(locks.With(core.WithPermits(3)).Lock(t.Context(), "permits"))(t)
	must(locks.With(core.WithFencing(true)).Lock(t.Context(), "k"))(t)
	must(locks.Lock(t.Context(), "half }"))(t)
	must(locks.Begin(t.Context(), "pay", nil))(t)
	watcher := newInspector(t, userClient(t, server, "watcher", processes...))
	suite.Eventually(t, "the process is registered", func() bool { return len(must(watcher.Processes(t.Context()))(t).Processes) == 1 })
	for n, right := range processes {
		less := newInspector(t, userClient(t, server, "blind"+right[1:], slices.Delete(slices.Clone(processes), n, n+1)...))
		if _, err := less.Processes(t.Context()); err == nil {
			t.Errorf("Processes does not need %s", right)
		}
	}
	reads := func(i *inspect.Inspector) error {
		page, err := i.Locks(t.Context(), inspect.Filter{})
		records, err2 := i.Records(t.Context(), inspect.Filter{})
		lock, err3 := i.Lock(t.Context(), "k")
		permits, err4 := i.Lock(t.Context(), "permits")
		record, err5 := i.Record(t.Context(), "pay")
		registered, err6 := i.Processes(t.Context())
		for _, err := range []error{err, err2, err3, err4, err5, err6} {
			if err != nil {
				return err
			}
		}
		if len(page.Locks) < 2 || page.DBSize == 0 || len(records.Records) != 1 || lock.FenceMax == 0 || len(permits.Holders) == 0 || record.State != core.StateRunning || len(registered.Processes) != 1 || len(lock.Processes) != 1 {
			t.Errorf("%+v, %+v, %+v, %+v, %+v, %+v", page, records, lock, permits, record, registered)
		}
		return nil
	}
	acts := func(i *inspect.Inspector) error {
		for _, key := range []string{"k", "permits"} {
			seen, err := i.Lock(t.Context(), key)
			if err == nil {
				err = i.Revoke(t.Context(), seen)
			}
			if err == nil {
				seen, err = i.Lock(t.Context(), key)
			}
			if err == nil {
				err = i.FreeNow(t.Context(), seen)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	reader := newInspector(t, userClient(t, server, "reader", read...))
	if err := reads(reader); err != nil {
		t.Error(err)
	}
	for n, right := range read {
		if !strings.HasPrefix(right, "+") || slices.Contains([]string{"+ping", "+dbsize"}, right) {
			continue // a client of a cluster sends PING, and DBSize is 0 without the other
		}
		less := newInspector(t, userClient(t, server, "less"+right[1:], slices.Delete(slices.Clone(read), n, n+1)...))
		if reads(less) == nil {
			t.Errorf("reading does not need %s", right)
		}
	}
	wantError(t, acts(reader), core.ErrUnavailable)
	all, other := newInspector(t, userClient(t, server, "all", "~*", "&*", "+@all")), newLocker(t, server.Client(t), core.WithTTL(time.Minute))
	waiters := []<-chan *core.Lease{wait(t, all, other, "k"), wait(t, all, other, "permits")}
	if err := acts(newInspector(t, userClient(t, server, "actor", both...))); err != nil {
		t.Fatal(err)
	}
	for _, waiter := range waiters { // they get a hint, and a minute would be too long
		<-waiter
	}
}
