package crash

import (
	"strings"
	"sync"
	"testing"
)

// A crash is one request whose process is killed, and its duplicates.
type crash struct {
	*site
	t         *testing.T
	step      step
	victim    *process
	survivors []*process
	first     question
	refuse    bool // the victim's handler may not go on
	crashed   sync.Once
	visited   func(v visit) // runs in the visits of the victim

	mu      sync.Mutex
	answers []answer
	clients sync.WaitGroup
}

func (c *crash) kill() { c.crashed.Do(c.victim.kill) }

// onVisit makes f run when the victim's handler has come in, or has had its effect.
func (c *crash) onVisit(charge bool, f func()) {
	c.visited = func(v visit) {
		if v.Charge == charge {
			f()
		}
	}
}

// play lets the victim crash, and asks what became of its request.
func (c *crash) play(waited bool) {
	c.step.arm(c)
	duplicate := c.first
	duplicate.reading = nil
	var once sync.Once
	c.ledger.hook(c.first.key, func(v visit) bool {
		if v.Process != c.victim.number {
			return true
		}
		if waited {
			once.Do(func() { c.sendWaiting(duplicate) })
		}
		if c.visited != nil {
			c.visited(v)
		}
		return !c.refuse
	})

	heard, err := c.ask(c.victim, c.first)
	// An abort is given up after its bound, and its client gets an answer. A busy machine
	// may kill the process only then.
	if (err == nil) != c.step.heard && !c.refuse {
		c.t.Errorf("the client of the crashed process got %v, %v", heard, err)
	}
	if c.step.heard {
		c.note(heard)
	}
	c.kill() // else it is dead, and what was done about it is done
	c.clients.Wait()
	c.wantOutcome(duplicate, waited)
	c.wantReplays(duplicate, heard)
	c.wantMismatch(duplicate)
	if c.held(duplicate) {
		c.t.Error("the key is held, and nobody runs")
	}

	told := c.story(duplicate, c.answers, append(c.survivors, c.victim)...)
	for _, fault := range told.faults() {
		c.t.Error(fault)
	}
	for number, was := range told.excused {
		if was {
			c.t.Errorf("process %d could not commit", number)
		}
	}
}

// sendWaiting sends a duplicate to another process, and returns when it waits.
func (c *crash) sendWaiting(q question) {
	p := c.survivors[0]
	c.clients.Go(func() { c.mustAsk(p, q) })
	key := c.framework.endpoint(q.policy, q.key)
	await(c.t, "the duplicate waits", func() bool { return p.told(waiting, key) > 0 })
}

// mustAsk asks a process that lives, so that there is an answer.
func (c *crash) mustAsk(p *process, q question) answer {
	c.t.Helper()
	a, err := c.ask(p, q)
	if err != nil {
		c.t.Errorf("no answer: %v", err)
	}
	c.note(a)
	return a
}

func (c *crash) note(a answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers = append(c.answers, a)
}

// wantOutcome fails the test unless the duplicates get what the policy says. In the
// end the request is done.
func (c *crash) wantOutcome(duplicate question, waited bool) {
	c.t.Helper()
	number, charges := 1, c.step.charge
	switch {
	case c.step.fate == interrupted && c.first.policy == reject:
		c.wantUnknown(duplicate, waited)
		c.resolve(duplicate)
	case c.step.fate == interrupted:
		number = 2
	}
	if c.step.fate != done {
		charges++
	}
	a := c.mustAsk(c.survivors[0], duplicate)
	if !a.Fine {
		c.t.Errorf("in the end it is not done: %v", a)
	}
	effects := c.ledger.of(c.first.key)
	if len(effects) != charges {
		c.t.Fatalf("charges %+v, want %d", effects, charges)
	}
	if last := effects[charges-1]; c.step.fate != done && last.Number != number || !strings.Contains(a.Body, last.id) {
		c.t.Errorf("the last charge is %+v of attempt %d, the answer %v", last, number, a)
	}
}

// wantUnknown fails the test unless everybody hears that the outcome is unknown, as
// soon as the lease of the dead has run out.
func (c *crash) wantUnknown(duplicate question, waited bool) {
	c.t.Helper()
	if waited {
		if len(c.answers) != 1 || c.answers[0].Code != "outcome_unknown" {
			c.t.Errorf("who waited got %v", c.answers)
		}
	}
	hasty := duplicate
	hasty.hasty = true
	for c.held(duplicate) {
		if a := c.mustAsk(c.survivors[0], hasty); a.Code != "busy" && c.held(duplicate) {
			c.t.Errorf("while the key is held: %v", a)
		}
	}
	for _, p := range append(c.survivors, c.survivors...) {
		if a := c.mustAsk(p, duplicate); a.Code != "outcome_unknown" {
			c.t.Errorf("after the lease: %v", a)
		}
	}
	c.wantMismatch(duplicate)
}

// wantMismatch fails the test unless another request with the key is refused.
func (c *crash) wantMismatch(q question) {
	c.t.Helper()
	q.long++
	if a := c.mustAsk(c.survivors[0], q); a.Code != "mismatch" {
		c.t.Errorf("another request with the key: %v", a)
	}
}

// resolve frees the key.
func (c *crash) resolve(q question) {
	c.t.Helper()
	if err := c.operator.Resolve(c.t.Context(), c.framework.endpoint(q.policy, q.key)); err != nil {
		c.t.Errorf("resolve: %v", err)
	}
}

// wantReplays fails the test unless all get the answer from now on, and what was
// heard before is a part of it.
func (c *crash) wantReplays(q question, heard answer) {
	c.t.Helper()
	for _, p := range append(c.survivors, c.survivors...) {
		a := c.mustAsk(p, q)
		if !a.Replayed || !a.Fine {
			c.t.Errorf("not replayed: %v", a)
		}
		if c.step.fate == done && !strings.HasPrefix(a.Body, heard.Body) {
			c.t.Errorf("the client has heard %d bytes that are not those of the replay: %v", len(heard.Body), heard)
		}
		if c.step.read && (len(heard.Body) < half || len(heard.Body) >= len(a.Body)) {
			c.t.Errorf("the client has heard %d of %d bytes", len(heard.Body), len(a.Body))
		}
	}
}
