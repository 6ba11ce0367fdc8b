package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/reqlock/reqlock/core"
)

// counts are what has happened on a site since its round began.
type counts struct {
	inside     int      // operations inside handlers
	most       int      // the maximum of inside
	operations []string // in the order of their start
	charges    int      // transfers that were made
	waiting    int      // requests that began to wait for a lock
	recovered  int      // answers of payments that Redis has accepted late

	answered int             // requests with an answer
	done     int             // of answered: those that were done
	replays  int             // of done: those with the answer of an earlier request
	contents map[string]bool // of done payments
	others   map[string]int  // of answered: the other ones, by kind, such as "409 + Retry-After"

	open  bool   // operations go on
	fails string // where the next operation fails: "clearing" or "booking"; "" for nowhere
}

func (s *site) update(how func(now *counts)) {
	s.changed.L.Lock()
	defer s.changed.L.Unlock()
	how(&s.now)
	s.changed.Broadcast()
}

// await waits until the condition holds or ctx ends. It returns the counts of that moment.
func (s *site) await(ctx context.Context, condition func(now counts) bool) counts {
	defer context.AfterFunc(ctx, func() { s.update(func(*counts) {}) })()
	s.changed.L.Lock()
	defer s.changed.L.Unlock()
	for !condition(s.now) && ctx.Err() == nil {
		s.changed.Wait()
	}
	return s.now
}

// clearing is the clearing of the bank. It lasts until the operations may go on, and then a little
// longer: otherwise operations that no lock keeps apart could run one after the other by chance.
func (s *site) clearing(ctx context.Context, operation string) error {
	s.update(func(now *counts) {
		now.inside++
		now.most = max(now.most, now.inside)
		now.operations = append(now.operations, operation)
	})
	defer s.update(func(now *counts) { now.inside-- })
	s.await(ctx, func(now counts) bool { return now.open })
	time.Sleep(time.Millisecond)
	return s.failure("clearing")
}

// booked is what follows a transfer.
func (s *site) booked() error {
	s.update(func(now *counts) { now.charges++ })
	return s.failure("booking")
}

// failure returns an error if the next operation is to fail here.
func (s *site) failure(here string) (err error) {
	s.update(func(now *counts) {
		if now.fails == here {
			now.fails, err = "", errBroken
		}
	})
	return err
}

// observe is the observer of the Locker.
func (s *site) observe(event core.Event) {
	s.update(func(now *counts) {
		switch {
		case event.Kind == core.Waiting:
			now.waiting++
		case event.Kind == core.Committed && event.Repeated && event.Err == nil:
			now.recovered++
		}
	})
}

// answer counts the answer to a request.
func (c *counts) answer(to request, a answer) {
	c.answered++
	if a.status != done {
		if a.retry != "" {
			a.status += " + " + a.retry
		}
		c.others[a.status]++
		return
	}
	c.done++
	if to.key != "" {
		c.contents[a.content] = true
	}
	if a.replayed {
		c.replays++
	}
}

// answers returns a text such as "1 done, 8 × 409 + Retry-After".
func (c counts) answers() string { return fmt.Sprintf("%d done%s", c.done, c.faults()) }

// faults returns a text for payments with different answers, and for what is not done.
func (c counts) faults() (text string) {
	for _, kind := range slices.Sorted(maps.Keys(c.others)) {
		text += fmt.Sprintf(", %d × %s", c.others[kind], kind)
	}
	if len(c.contents) > 1 {
		text += fmt.Sprintf(", %d different answers", len(c.contents))
	}
	return text
}

// charged returns a text such as "1 charge".
func (c counts) charged() string {
	if c.charges == 1 {
		return "1 charge"
	}
	return fmt.Sprintf("%d charges", c.charges)
}
