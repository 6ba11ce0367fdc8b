package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
	"github.com/reqlock/reqlock/tests/faults/internal/resource"
	"github.com/reqlock/reqlock/tests/internal/clock"
)

// A fixture is a client in the process of the test.
type fixture struct {
	*client
	server   *redistest.Server
	resource *resource.Resource
	reports  string // the path of a file
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	b := &fixture{server: redistest.Start(t), resource: resource.Serve(t), reports: filepath.Join(t.TempDir(), "reports")}
	file, err := os.Create(b.reports)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{
		Config: Config{Process: 3, Keys: []string{"k"}, TTL: time.Second},
		clock:  clock.New(), reporter: &reporter{process: 3, to: file}, ending: make(chan struct{}),
		locks: core.Must(core.New(b.server.Client(t), core.WithTTL(time.Second), core.WithFencing(true))),
	}
	user, err := resource.Dial(t.Context(), b.resource.Addr(), 3, 7)
	if err != nil {
		t.Fatal(err)
	}
	b.client = &client{process: p, number: 7, random: rand.New(rand.NewPCG(1, 2)), user: user}
	t.Cleanup(func() {
		if err := p.locks.Close(context.Background()); err != nil {
			t.Error(err)
		}
		_ = user.Close()
		_ = file.Close()
	})
	return b
}

// reportedOps returns all calls that were reported so far.
func (b *fixture) reportedOps(t *testing.T) (ops []history.Op) {
	t.Helper()
	text, err := os.ReadFile(b.reports)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var r Report
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		for len(ops) < r.Call {
			ops = append(ops, history.Op{})
		}
		ops[r.Call-1] = r.Op
	}
	return ops
}

// A holder whose key is gone is notified, stops relying on the lock, and does not write the
// unfenced register.
func TestHolderIsNotified(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	h, outcome := b.lock(b.waitForever(), "k")
	if _, valid := h.isValid(); outcome != history.Granted || !valid {
		t.Fatalf("%s, valid %v", outcome, valid)
	}
	seen, ok := b.read(h)
	if !ok {
		t.Fatal("refused")
	}
	b.server.Client(t).Set(t.Context(), "reqlock:k", "foreign", 0)
	suite.AwaitClosed(t, "the lease ends", h.lease.Context().Done())
	suite.Eventually(t, "the end of the lease is reported", func() bool {
		return slices.ContainsFunc(b.reportedOps(t), func(op history.Op) bool {
			return op.Kind == history.LeaseEnd && op.Return != 0
		})
	})
	b.write(h, seen, false)
	h.release()

	var leaseEnd, released history.Op
	for _, op := range b.reportedOps(t) {
		switch op.Kind {
		case history.LeaseEnd:
			leaseEnd = op
		case history.Release:
			released = op
		}
		if op.Process != 3 || op.Client != 7 || op.Lease != "3/1" || op.Return == 0 {
			t.Errorf("%+v", op)
		}
	}
	if leaseEnd.Outcome != history.Lost || leaseEnd.Call != h.ended.Load() || leaseEnd.ValidUntil == 0 {
		t.Errorf("lease end %+v", leaseEnd)
	}
	if released.Outcome != history.Lost || released.ReliedUntil > leaseEnd.Call || released.ReliedUntil == 0 {
		t.Errorf("released %+v, notified at %d", released, leaseEnd.Call)
	}
	var written []bool // whether the register is fenced
	for _, a := range b.resource.Accesses() {
		if a.Write {
			written = append(written, a.Fenced)
		}
	}
	if len(written) != 1 || !written[0] {
		t.Errorf("accesses %+v", b.resource.Accesses())
	}
}

func TestCallIsReportedBeforeItReturns(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.server.Client(t).Set(t.Context(), "reqlock:k", "foreign", 0)
	ctx, cancel := context.WithCancel(t.Context())
	returned := make(chan history.Outcome)
	go func() {
		_, outcome := b.lock(waitMode{ctx: ctx, cancel: cancel, locks: b.locks}, "k")
		returned <- outcome
	}()
	suite.Eventually(t, "the call is reported", func() bool { return len(b.reportedOps(t)) > 0 })
	if ops := b.reportedOps(t); len(ops) != 1 || ops[0].Call == 0 || ops[0].Return != 0 || ops[0].Outcome != history.None {
		t.Errorf("%+v", ops)
	}
	cancel()
	if outcome := suite.Receive(t, "the call returns", returned); outcome != history.Deadline {
		t.Errorf("outcome %s", outcome)
	}
	if ops := b.reportedOps(t); len(ops) != 1 || ops[0].Return < ops[0].Call || ops[0].Outcome != history.Deadline || ops[0].Error == "" {
		t.Errorf("%+v", ops)
	}
}

// A deadline stays the same while the process is late: the call then waits for the rest.
// WithWait starts when the call does.
func TestAWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	seen := map[string]bool{}
	for len(seen) < 4 {
		m := b.chooseWait()
		_, timed := m.ctx.Deadline()
		kind := fmt.Sprint(m.wait != 0, m.until != 0, timed)
		op := m.op("k")
		switch {
		case m.until == 0 && op.Wait != m.wait.Nanoseconds():
			t.Errorf("%s: waits %d, want %v", kind, op.Wait, m.wait)
		case m.until != 0 && op.Call+op.Wait != max(m.until, op.Call+1):
			t.Errorf("%s: waits until %d, want %d", kind, op.Call+op.Wait, m.until)
		}
		if m.until != 0 && !seen[kind] {
			<-m.ctx.Done()
			if at := clock.Now(); at < m.until {
				t.Errorf("%s: the context ended at %d, before %d", kind, at, m.until)
			}
			if late := m.op("k"); late.Wait != 1 {
				t.Errorf("%s: waits %d after the end", kind, late.Wait)
			}
		}
		seen[kind] = true
		m.cancel()
	}
}

func TestPanicReleasesLock(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	for n := 0; n < 40; n++ { // about a third of them panic
		if outcome := b.runLocked(); outcome != history.Granted {
			t.Fatal(outcome)
		}
	}
	ops := b.reportedOps(t)
	granted, released := 0, 0
	for _, op := range ops {
		switch {
		case op.Kind == history.Lock && op.Outcome == history.Granted:
			granted++
		case op.Kind == history.Release && op.Outcome == history.Done:
			released++
		}
	}
	if granted != 40 || released != 40 {
		t.Errorf("%d granted, %d released: %+v", granted, released, ops)
	}
}

func TestAttempts(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	count := map[history.Kind]int{}
	for count[history.Commit] == 0 || count[history.Abort] == 0 || count[history.Release] < 3 {
		b.payOnce()
		clear(count)
		for _, op := range b.reportedOps(t) {
			count[op.Kind]++
		}
	}
	ops := b.reportedOps(t)
	ended := map[string]history.Op{}
	for _, op := range ops {
		switch op.Kind {
		case history.Release, history.Commit, history.Abort:
			if _, twice := ended[op.Lease]; twice || op.ReliedUntil == 0 || op.Number == 0 {
				t.Errorf("%+v", op)
			}
			ended[op.Lease] = op
		}
	}
	for _, op := range ops {
		if op.Kind == history.Begin && op.Outcome == history.Granted && ended[op.Lease].Key != op.Key {
			t.Errorf("%+v ends by %+v", op, ended[op.Lease])
		}
	}
	charged := map[string]int{}
	for _, e := range b.resource.Effects() {
		charged[e.Lease]++
	}
	for lease, op := range ended {
		if n := charged[lease]; op.Kind == history.Commit && n != 1 || op.Kind == history.Abort && n != 0 {
			t.Errorf("%d charges by %+v", n, op)
		}
	}
}
