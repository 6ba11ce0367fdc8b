package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// searching returns a Locker that searches each second, and its events.
func (d *deployment) searching(t *testing.T) (*core.Locker, *recorder) {
	t.Helper()
	d.Grant(redistest.SearchRights...)
	return d.observed(t, d.Client(t), core.WithUnknownSearch(time.Second), core.WithTTL(2*time.Second))
}

// die leaves the record of a request as a process that died leaves it. A Locker without a logger and an
// observer reports nothing.
func (d *deployment) die(t *testing.T, key string) {
	t.Helper()
	noError(t, begin(t, d.newLocker(t, d.Client(t), core.WithLogger(nil)), key).Unknown(t.Context(), nil))
}

// counts reports whether the last search has found this many unknown outcomes.
func (r *recorder) counts(open int) bool {
	searched := r.of(core.Searched)
	return len(searched) > 0 && searched[len(searched)-1].Open == open && searched[len(searched)-1].Took > 0
}

// One of two processes reports each unknown outcome once, whoever asks, restarts or takes over.
func testUnknownSearch(t *testing.T, servers *deployment) {
	admin := servers.Client(t)
	key := adapter.Must(core.EndpointKey("POST", "/payments", "ada"))
	for name, fields := range map[string]map[string]string{
		"i:list": nil, "i:garbage": {"s": "R", "n": "x"}, "i:done": {"s": "D", "t": "x:1", "f": "f"}, "lock": {"s": "R", "t": "x:1", "f": "f", "n": "1"},
	} {
		record := servers.companion(name, "r")
		if fields == nil {
			noError(t, admin.LPush(t.Context(), record, "x").Err())
			continue
		}
		noError(t, admin.Set(t.Context(), record, storetest.EncodeRecord(fields), 0).Err())
	}
	servers.die(t, key)
	servers.die(t, "{user}"+key) // its record has another form
	servers.die(t, "a}b")        // its key is written as a digest
	running := begin(t, servers.newLocker(t, servers.Client(t)), "running")
	first, firstEvents := servers.searching(t)
	suite.Eventually(t, "a search counts", func() bool { return firstEvents.counts(3) })
	second, secondEvents := servers.searching(t)
	own := begin(t, second, "own")
	noError(t, own.Unknown(t.Context(), nil))
	suite.Eventually(t, "a search counts", func() bool { return firstEvents.counts(4) })
	if got := secondEvents.of(core.Searched); len(got) != 0 {
		t.Errorf("two processes search: %+v", got)
	}
	copyOf, copyEvents := servers.observed(t, servers.Client(t))
	for _, key := range []string{key, "a}b", "own"} {
		wantError(t, errorOf(copyOf.Begin(t.Context(), key, []byte("f"))), core.ErrOutcomeUnknown)
	}
	noError(t, copyOf.Close(t.Context()))

	noError(t, first.Close(t.Context()))
	if all := firstEvents.of(core.Searched); all[len(all)-1].Open != 0 || all[len(all)-1].Took != 0 {
		t.Errorf("the last event: %+v", all[len(all)-1])
	}
	suite.Eventually(t, "the other process searches", func() bool { return secondEvents.counts(4) })
	record, err := second.ReadRecord(t.Context(), key)
	noError(t, err)
	reports := map[string]core.Event{}
	for _, event := range append(firstEvents.of(core.OutcomeUnknown), copyEvents.of(core.OutcomeUnknown)...) {
		raw := strings.TrimPrefix(event.Key.Raw(), "i:")
		if _, again := reports[raw]; again || event.Held != 0 || event.Number != 1 || event.Age < 0 || event.Age > time.Minute ||
			!strings.HasPrefix(textOf(event.Err), "reqlock: a search has found an attempt that died or ended unknown") {
			t.Errorf("reported again, or wrongly: %+v", event)
		}
		reports[raw] = event
	}
	if _, ok := reports[key].Key.EndpointKey(); len(reports) != 3 || !ok || reports[key].Attempt != record.Attempt ||
		!reports[""].Key.IsEmpty() || !strings.HasSuffix(textOf(reports[""].Err), "as a digest only") {
		t.Errorf("reports %+v", reports)
	}
	if got := secondEvents.of(core.OutcomeUnknown); len(got) != 1 || got[0].Attempt != (core.AttemptID{}) { // that of Unknown
		t.Errorf("reports of the second process: %+v", got)
	}

	for _, key := range []string{key, "{user}" + key, "a}b", "own"} {
		record, err := second.ReadRecord(t.Context(), key)
		noError(t, err)
		noError(t, second.Resolve(t.Context(), key, core.NotDone(), record.Attempt))
	}
	suite.Eventually(t, "a search counts", func() bool { return secondEvents.counts(0) })
	noError(t, running.Commit(t.Context(), nil))
	for _, event := range append(firstEvents.all(), secondEvents.all()...) {
		if event.Key.Raw() == "reqlock-unknown-search" || event.Kind == core.Warned {
			t.Errorf("event %+v", event)
		}
	}
}

// A search that fails warns once, and the next one tries again. Check finds the missing right, too.
func TestUnknownSearchWithoutTheRightToScan(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	admin := server.Client(t)
	setUser(t, admin, "alice", redistest.Rights, "")
	locks, events := observed(t, server.Client(t, as("alice", "secret"), deadlines), core.WithUnknownSearch(time.Second), patient)
	wantFinding(t, locks.Check(t.Context()), "grant it +getrange +scan")
	servers := &deployment{prefix: "reqlock:"}
	noError(t, admin.Set(t.Context(), servers.companion("i:k", "r"), storetest.EncodeRecord(map[string]string{"s": "R", "t": "x:1", "f": "f", "n": "1"}), 0).Err())
	rejected := func() (n int) {
		_, stats, _ := strings.Cut(admin.Info(t.Context(), "commandstats").Val(), "cmdstat_scan:")
		_, count, _ := strings.Cut(stats, "rejected_calls=")
		_, _ = fmt.Sscan(count, &n)
		return n
	}
	before := rejected()
	suite.Eventually(t, "two more searches fail", func() bool { return rejected() >= before+2 })
	noError(t, admin.Do(t.Context(), "acl", "setuser", "alice", "+scan", "+getrange").Err())
	suite.Eventually(t, "a search counts", func() bool { return events.counts(1) })
	warned, unknown := events.of(core.Warned), events.of(core.OutcomeUnknown)
	if len(warned) != 1 || !strings.Contains(warned[0].Err.Error(), "a search for unknown outcomes has failed, and is tried again: "+
		"the user of redis may not run SCAN: grant it +scan") || strings.Contains(warned[0].Err.Error(), "alice") {
		t.Errorf("warned %v", warned)
	}
	if len(unknown) != 1 || unknown[0].Age != 0 {
		t.Errorf("without +object|idletime: %+v", unknown)
	}
	noError(t, locks.Check(t.Context()))
}

// A user of an earlier version may have +scan, and not +getrange. The search must not fail in silence then.
func TestUnknownSearchWithoutTheRightToRead(t *testing.T) {
	t.Parallel()
	server := redistest.Reuse(t)
	admin := server.Client(t)
	setUser(t, admin, "alice", redistest.Rights+" +scan", "")
	locks, events := observed(t, server.Client(t, as("alice", "secret"), deadlines), core.WithUnknownSearch(time.Second), patient)
	wantFinding(t, locks.Check(t.Context()), "grant it +getrange")
	record := (&deployment{prefix: "reqlock:"}).companion("i:k", "r")
	noError(t, admin.Set(t.Context(), record, storetest.EncodeRecord(map[string]string{"s": "R", "t": "x:1", "f": "f", "n": "1"}), 0).Err())
	suite.Eventually(t, "a search warns", func() bool { return len(events.of(core.Warned)) > 0 })
	if text := events.of(core.Warned)[0].Err.Error(); !strings.Contains(text, "may not run GETRANGE: grant it +getrange") || strings.Contains(text, "alice") {
		t.Error(text)
	}
}

// A search of many keys takes little of the server's time, and finds the record among them.
func TestUnknownSearchAmongManyKeys(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Grant(redistest.SearchRights...)
	const each = 10_000
	admin := server.Client(t)
	for batch := range suite.Size(2, 50) {
		_, err := admin.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
			for i := range each {
				pipe.Set(t.Context(), fmt.Sprintf("session:reqlock:%d:%d", batch, i), "x", 0)
			}
			return nil
		})
		noError(t, err)
	}
	locks, events := observed(t, server.Client(t), core.WithUnknownSearch(time.Second))
	noError(t, begin(t, locks, "k").Unknown(t.Context(), errors.New("x")))
	suite.Eventually(t, "a search counts", func() bool { return events.counts(1) })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	noError(t, locks.Close(ctx))
	t.Log(events.of(core.Searched)[0].Took)
}

func TestSearchNeedsSomebodyToReportTo(t *testing.T) {
	t.Parallel()
	_, err := core.New(newEmbedded(t), core.WithUnknownSearch(time.Minute), core.WithLogger(nil))
	if err == nil || !strings.HasPrefix(err.Error(), "reqlock: WithUnknownSearch: there is no logger and no observer") {
		t.Error(err)
	}
}
