package engine

import (
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

func (s *fakeStore) take(r storetest.AnyRequest) (answer store.Answer, err error) {
	sent := time.Now()
	err = s.transition("take", r, func(value string) {
		if value != "" && value != r.Token {
			answer.Shared = value == marker
			if answer.HolderUnknown = !r.WithHolder; r.WithHolder {
				answer.Holder = value
			}
			return
		}
		if value == "" {
			s.keys[r.Key] = entry{r.Token, time.Now().Add(r.TTL)}
		}
		answer = store.Answer{Granted: true, Since: sent, Waiting: store.WaitingUnknown}
	})
	return answer, err
}

func (s *fakeStore) enqueue(r storetest.AnyRequest) (answer store.Answer, err error) {
	sent := time.Now()
	name := "enqueue"
	if r.Attempt != nil {
		name = "begin"
	}
	err = s.transition(name, r, func(value string) {
		if r.Attempt != nil {
			var decided bool
			if answer, decided = s.begin(r, value); decided {
				return
			}
		}
		answer = s.ask(r, value)
		answer.Since = sent
		switch {
		case r.Attempt == nil:
		case answer.Granted:
			answer.Number = s.run(r)
		default:
			answer.Running = s.records[r.Key].state == 'R'
		}
	})
	return answer, err
}

func (s *fakeStore) renew(r storetest.AnyRequest) (renewal store.Renewal, err error) {
	renewal.Since = time.Now()
	err = s.transition("renew", r, func(value string) {
		p := s.out(r.Key)
		switch shared := p != nil && !p.leases[r.Token].IsZero(); {
		case shared:
			s.raiseShared(p, r)
			renewal.Fence, renewal.Fences = s.phaseNumber(r)
		case p == nil && value == r.Token:
			s.raiseTTL(r)
			renewal.Fence, renewal.Fences = s.reserve(r)
		default:
			return
		}
		renewal.Held, renewal.Waiting = true, len(s.queues[r.Key])
	})
	return renewal, err
}

func (s *fakeStore) release(r storetest.AnyRequest) (released store.ReleaseResult, err error) {
	released.Since = time.Now()
	name := "release"
	if r.Attempt != nil {
		if r.Rejoin != "" {
			panic("an attempt rejoins")
		}
		name = [...]string{store.Abort: "abort", store.Commit: "commit", store.Seal: "seal"}[r.Ending]
	}
	err = s.transition(name, r, func(value string) {
		if r.Attempt != nil {
			released.Record = s.finish(r, value)
		}
		if r.Keep > 0 {
			if value == r.Token {
				s.keys[r.Key] = entry{"kept", time.Now().Add(r.Keep)}
				released.Status = store.Freed
			}
			return
		}
		released.Status = s.give(r, value)
		if s.nextUnsure && released.Status != store.NotHeld {
			s.nextUnsure, released.Status = false, store.Unsure
		}
	})
	return released, err
}
