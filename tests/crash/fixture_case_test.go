package crash

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A crashCase is one request, at which a process is killed, and the duplicates of the
// request.
type crashCase struct {
	*testbed
	t         *testing.T // of this case; the testbed serves several
	step      step
	victim    *process
	survivors []*process
	first     request
	refuse    bool // the ledger refuses the victim's calls
	fail      bool // the ledger charges for the victim, and its answer is an error
	crashed   sync.Once
	onCall    func(v ledgerCall) // runs in the ledger's calls by the victim
	lost      <-chan struct{}    // is closed when the step has lost a reply; nil if it loses none

	mu      sync.Mutex
	answers []answer
	clients sync.WaitGroup
	held    []func() // release the commands that the proxy still holds
}

func (c *crashCase) kill() { c.crashed.Do(c.victim.Kill) }

// atLedgerCall runs f when the victim's handler starts (charge is false) or has charged.
func (c *crashCase) atLedgerCall(charge bool, f func()) {
	c.onCall = func(v ledgerCall) {
		if v.Charge == charge {
			f()
		}
	}
}

func (c *crashCase) run(withWaiter bool) {
	c.t.Helper()
	c.step.arm(c)
	duplicate := c.first
	duplicate.reading = nil
	var once sync.Once
	c.ledger.hook(c.first.key, func(v ledgerCall) bool {
		if v.Process != c.victim.number {
			return true
		}
		if withWaiter {
			once.Do(func() { c.sendWaiting(duplicate) })
		}
		if c.onCall != nil {
			c.onCall(v)
		}
		return !c.refuse && (!c.fail || !v.Charge)
	})

	received, err := c.ask(c.victim, c.first)
	// An abort has a time limit, after which the client gets an answer. On a busy machine
	// the process may be killed only then.
	if (err == nil) != c.step.answered && !c.refuse && !c.fail {
		c.t.Errorf("the client of the killed process got %v, %v", received, err)
	}
	if c.step.answered {
		c.add(received)
	}
	c.kill() // where no step did; otherwise this waits until the step's kill is complete
	c.clients.Wait()
	if c.lost != nil { // before that, the command of the killed process may not have run
		suite.AwaitClosed(c.t, "the reply is lost", c.lost)
	}
	c.wantOutcome(duplicate, withWaiter)
	c.wantReplays(duplicate, received)
	c.wantMismatch(duplicate)
	if c.isHeld(duplicate) {
		c.t.Error("the key is held although no attempt runs")
	}

	seen := c.observe(duplicate, c.answers, append(c.survivors, c.victim)...)
	for _, violation := range seen.Violations() {
		c.t.Error(violation)
	}
	for number, was := range seen.Uncommitted {
		if was {
			c.t.Errorf("process %d could not commit", number)
		}
	}
}

func (c *crashCase) sendWaiting(q request) {
	p := c.survivors[0]
	c.clients.Go(func() { c.mustAsk(p, q) })
	key := c.framework.endpoint(q.policy, q.key)
	suite.Eventually(c.t, "the duplicate waits", func() bool { return p.events(waiting, key) > 0 })
}

// mustAsk sends a request to a process that lives. No answer fails the test.
func (c *crashCase) mustAsk(p *process, q request) answer {
	c.t.Helper()
	a, err := c.ask(p, q)
	if err != nil {
		c.t.Errorf("no answer: %v", err)
	}
	c.add(a)
	return a
}

func (c *crashCase) add(a answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers = append(c.answers, a)
}

// wantOutcome fails the test unless the duplicates get what the policy states and the
// request succeeds in the end.
func (c *crashCase) wantOutcome(duplicate request, withWaiter bool) {
	c.t.Helper()
	number, charges := 1, c.step.charge
	switch {
	case c.step.recorded == interrupted && c.first.policy == reject:
		c.wantUnknown(duplicate, withWaiter)
		c.resolve(duplicate)
	case c.step.recorded == interrupted:
		number = 2
	}
	if c.step.recorded != done {
		charges++
	}
	a := c.mustAsk(c.survivors[0], duplicate)
	if !a.Fine {
		c.t.Errorf("the last duplicate does not succeed: %v", a)
	}
	effects := c.ledger.of(c.first.key)
	if len(effects) != charges {
		c.t.Fatalf("charges %+v, want %d", effects, charges)
	}
	if last := effects[charges-1]; c.step.recorded != done && last.Number != number || !strings.Contains(a.Body, last.ID) {
		c.t.Errorf("the last charge is %+v of attempt %d, the answer %v", last, number, a)
	}
}

// askPause is the pause between two duplicates while the key is held.
const askPause = 20 * time.Millisecond

// wantUnknown fails the test unless each duplicate gets outcome_unknown as soon as the
// lease of the killed process has expired.
func (c *crashCase) wantUnknown(duplicate request, withWaiter bool) {
	c.t.Helper()
	if withWaiter {
		if len(c.answers) != 1 || c.answers[0].Code != "outcome_unknown" {
			c.t.Errorf("the waiting duplicate got %v", c.answers)
		}
	}
	atOnce := duplicate
	atOnce.nowait = true
	asked, busy := 0, 0
	suite.Eventually(c.t, "the lease of the killed process ends", suite.Every(askPause, func() bool {
		if !c.isHeld(duplicate) {
			return true
		}
		asked++
		switch a := c.mustAsk(c.survivors[0], atOnce); {
		case a.Code == "busy":
			busy++
		case c.isHeld(duplicate):
			c.t.Errorf("while the key is held: %v", a)
		}
		return false
	}))
	if asked > 2 && busy == 0 {
		c.t.Errorf("none of %d duplicates got the answer that the key is busy", asked)
	}
	for _, p := range append(c.survivors, c.survivors...) {
		if a := c.mustAsk(p, duplicate); a.Code != "outcome_unknown" {
			c.t.Errorf("after the lease: %v", a)
		}
	}
	c.wantMismatch(duplicate)
}

// wantMismatch fails the test unless another request with the key is refused.
func (c *crashCase) wantMismatch(q request) {
	c.t.Helper()
	q.extra++
	if a := c.mustAsk(c.survivors[0], q); a.Code != "mismatch" {
		c.t.Errorf("another request with the key: %v", a)
	}
}

func (c *crashCase) resolve(q request) {
	c.t.Helper()
	if err := c.forget(c.t.Context(), q); err != nil {
		c.t.Errorf("resolve: %v", err)
	}
}

// wantReplays fails the test unless each duplicate gets the stored answer from now on. What
// the first client has received must be the beginning of that answer.
func (c *crashCase) wantReplays(q request, received answer) {
	c.t.Helper()
	for _, p := range append(c.survivors, c.survivors...) {
		a := c.mustAsk(p, q)
		if !a.Replayed || !a.Fine {
			c.t.Errorf("not replayed: %v", a)
		}
		if c.step.recorded == done && !strings.HasPrefix(a.Body, received.Body) {
			c.t.Errorf("the client received %d bytes that differ from the replay: %v", len(received.Body), received)
		}
		if c.step.read && (len(received.Body) < firstPart || len(received.Body) >= len(a.Body)) {
			c.t.Errorf("the client received %d of %d bytes", len(received.Body), len(a.Body))
		}
	}
}
