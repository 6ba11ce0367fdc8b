package engine

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// fakeServer is the server of fake stores: keys, queues, and the processes that listen.
// In a synctest bubble it uses the clock of the bubble.
type fakeServer struct {
	mu     sync.Mutex
	keys   map[string]entry
	queues map[string][]string
	phases map[string]*phase // the shared leases, by key
	fences map[string]int64
	stores map[string]*fakeStore // by process
	// records has the records of attempts, by key.
	records   map[string]fakeRecord
	hintsLost bool // hints get lost
	// fencesAtOnce is how many fencing numbers a command reserves at most; 0 is no
	// limit.
	fencesAtOnce int
}

type entry struct {
	value string
	until time.Time
}

func newFakeServer() *fakeServer {
	return &fakeServer{
		keys: make(map[string]entry), queues: make(map[string][]string),
		fences: make(map[string]int64), stores: make(map[string]*fakeStore),
		records: make(map[string]fakeRecord), phases: make(map[string]*phase),
	}
}

// live returns the entry of a key, empty if its TTL has ended.
func (s *fakeServer) live(key string) entry {
	e := s.keys[key]
	if !time.Now().Before(e.until) {
		delete(s.keys, key)
		return entry{}
	}
	return e
}

// sendHint sends a hint to the process of a token, and reports whether that process
// listens.
func (s *fakeServer) sendHint(key, token string) bool {
	process, _, _ := strings.Cut(token, ":")
	to := s.stores[process]
	if to == nil || !to.listens() {
		return false
	}
	if !s.hintsLost {
		go to.hint(key, token)
	}
	return true
}

// leaveQueue removes the token of a request from the queue.
func (s *fakeServer) leaveQueue(r storetest.AnyRequest) {
	s.queues[r.Key] = slices.DeleteFunc(s.queues[r.Key], func(t string) bool { return t == r.Token })
}

func (s *fakeServer) join(key, token string) {
	if !slices.Contains(s.queues[key], token) {
		s.queues[key] = append(s.queues[key], token)
	}
}

func (s *fakeServer) raiseTTL(r storetest.AnyRequest) {
	if until := time.Now().Add(r.TTL); until.After(s.keys[r.Key].until) {
		s.keys[r.Key] = entry{r.Token, until}
	}
}

// reserve reserves fencing numbers: as many as the request wants, and fencesAtOnce at
// most.
func (s *fakeServer) reserve(r storetest.AnyRequest) (first int64, count int) {
	if r.Fences == 0 {
		return 0, 0
	}
	count = r.Fences
	if s.fencesAtOnce > 0 {
		count = min(count, s.fencesAtOnce)
	}
	first = s.fences[r.Key] + 1
	s.fences[r.Key] += int64(count)
	return first, count
}

// set sets the value of a key, as another process does.
func (s *fakeServer) set(key, value string, ttl time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[key] = entry{value, time.Now().Add(ttl)}
}

// value returns the value of a key.
func (s *fakeServer) value(key string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live(key).value
}

// queue returns the tokens that wait for a key.
func (s *fakeServer) queue(key string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.queues[key])
}

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
	switch {
	case r.Attempt != nil:
		name = "begin"
	case r.Ticket != "":
		name = "accept"
	}
	err = s.transition(name, r, func(value string) {
		if r.Ticket != "" {
			answer = s.accept(r, value)
			answer.Since = sent
			return
		}
		if r.Attempt != nil {
			var decided bool
			if answer, decided = s.begin(r, value); decided {
				return
			}
		}
		if isBriefShared(r) && !s.hasRoom(r, value) {
			answer.HolderUnknown = true
			return
		}
		answer = s.ask(r, value)
		answer.Since = sent
		switch record := s.records[r.Key]; {
		case r.Attempt == nil:
		case answer.Granted:
			if record.state == 'R' && record.token != r.Token {
				answer.First = record.reference
			}
			answer.Number = s.run(r)
		default:
			if answer.Running = record.state == 'R'; answer.Running {
				answer.First = record.reference
			}
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
		name = [...]string{store.EndAbort: "abort", store.EndCommit: "commit", store.EndDone: "seal"}[r.Ending]
	}
	if r.Ticket != "" {
		name = "handover"
	}
	err = s.transition(name, r, func(value string) {
		if r.Attempt != nil {
			released.Record = s.finish(r, value)
		}
		if r.Keep > 0 {
			if value == r.Token || r.Ticket != "" && value == r.Ticket {
				s.keys[r.Key] = entry{cmp.Or(r.Ticket, "kept"), time.Now().Add(r.Keep)}
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

// accept replaces the token of a ticket by that of the request.
func (s *fakeServer) accept(r storetest.AnyRequest, value string) (answer store.Answer) {
	if value != r.Token && value != r.Ticket {
		return store.Answer{}
	}
	if value == r.Ticket {
		s.keys[r.Key] = entry{r.Token, time.Now().Add(r.TTL)}
	}
	s.raiseTTL(r)
	answer.Granted, answer.Waiting = true, len(s.queues[r.Key])
	answer.Fence, answer.Fences = s.reserve(r)
	return answer
}

// locked runs f under the mutex of the server.
func (s *fakeServer) locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}
