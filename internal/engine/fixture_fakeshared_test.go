package engine

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// marker is the value of a key while shared leases are out.
const marker = "shared"

// headGrace is how much longer than a claim the head of the queue keeps those behind it
// waiting after its last request.
const headGrace = 1500 * time.Millisecond

// A phase has the shared leases of a key that are out, with their ends. It exists as long
// as the value of the key is the marker.
type phase struct {
	leases map[string]time.Time
	number int64 // the fencing number of all; 0 is not drawn
	// head is the token at the head of the queue, which cannot be granted yet and keeps those
	// behind it waiting until headUntil.
	head      string
	headUntil time.Time
}

// placesOf returns beside how many shared leases a token can be granted: fewer than that.
func placesOf(token string) int {
	switch limit := limitOf(token); limit {
	case store.Exclusive:
		return 1
	case store.Unlimited:
		return math.MaxInt
	default:
		return int(limit)
	}
}

// out returns the phase of the key; nil if no shared leases are out. Leases that have expired
// are gone.
func (s *fakeServer) out(key string) *phase {
	p := s.phases[key]
	if p == nil || s.keys[key].value != marker {
		delete(s.phases, key)
		return nil
	}
	maps.DeleteFunc(p.leases, func(_ string, until time.Time) bool { return !time.Now().Before(until) })
	s.settle(key)
	return s.phases[key]
}

// sharedCount returns how many shared leases are out.
func (s *fakeServer) sharedCount(key string) int {
	if p := s.out(key); p != nil {
		return len(p.leases)
	}
	return 0
}

// settle makes the value of the key the marker for as long as shared leases are out.
func (s *fakeServer) settle(key string) {
	p := s.phases[key]
	switch {
	case p == nil:
	case len(p.leases) == 0:
		delete(s.phases, key)
		delete(s.keys, key)
	default:
		s.keys[key] = entry{marker, slices.MaxFunc(slices.Collect(maps.Values(p.leases)), time.Time.Compare)}
	}
}

// enter grants a token that has left the queue what it wants: its own for the TTL, another
// one for the time of a claim, if its process listens.
func (s *fakeServer) enter(r storetest.AnyRequest, token, own string) bool {
	life := r.TTL
	if token != own {
		if life = r.Claim; !s.sendHint(r.Key, token) {
			return false
		}
	}
	if !limitOf(token).IsShared() {
		s.keys[r.Key] = entry{token, time.Now().Add(life)}
		delete(s.phases, r.Key)
		return true
	}
	p := s.out(r.Key)
	if p == nil {
		p = &phase{leases: make(map[string]time.Time)}
		s.phases[r.Key] = p
	}
	if p.head == token {
		p.head = ""
	}
	p.leases[token] = time.Now().Add(life)
	s.settle(r.Key)
	return true
}

// admit grants the key to the tokens at the head of the queue that can be granted, own
// among them. If a shared token is granted first, all shared tokens that fit are granted
// with it. It reports whether own was granted, and whether another was.
func (s *fakeServer) admit(r storetest.AnyRequest, own string) (mine, others bool) {
	grant := func(token string) {
		if s.enter(r, token, own) {
			mine, others = mine || token == own, others || token != own
		}
	}
	opens := s.sharedCount(r.Key) == 0
	for len(s.queues[r.Key]) > 0 {
		first := s.queues[r.Key][0]
		if alone := s.live(r.Key).value; alone != "" && alone != marker {
			break
		}
		fits := s.sharedCount(r.Key) < placesOf(first)
		if !fits && (opens || s.headBlocks(r, first, own)) {
			break
		}
		s.queues[r.Key] = s.queues[r.Key][1:]
		if fits {
			grant(first)
		}
	}
	if opens && s.sharedCount(r.Key) > 0 {
		for _, token := range slices.Clone(s.queues[r.Key]) {
			if limitOf(token).IsShared() && s.sharedCount(r.Key) < placesOf(token) {
				s.queues[r.Key] = slices.DeleteFunc(s.queues[r.Key], func(t string) bool { return t == token })
				grant(token)
			}
		}
	}
	return mine, others
}

// headBlocks reports whether the head of the queue keeps own waiting, which could be granted.
func (s *fakeServer) headBlocks(r storetest.AnyRequest, first, own string) bool {
	p := s.out(r.Key)
	if own == "" || !limitOf(own).IsShared() || len(p.leases) >= placesOf(own) || first == own {
		return true
	}
	if p.head == first {
		return time.Now().Before(p.headUntil)
	}
	if !s.sendHint(r.Key, first) {
		return false
	}
	p.head, p.headUntil = first, time.Now().Add(r.Claim+headGrace)
	return true
}

// ask asks for a lease of either kind.
func (s *fakeServer) ask(r storetest.AnyRequest, value string) (answer store.Answer) {
	p, limit := s.out(r.Key), limitOf(r.Token)
	alone, known := value != "" && p == nil, slices.Contains(s.queues[r.Key], r.Token)
	mine, hinted := false, false
	switch {
	case alone && value == r.Token:
		mine = true
		s.leaveQueue(r)
		s.raiseTTL(r)
	case p != nil && !p.leases[r.Token].IsZero():
		mine = true
		s.leaveQueue(r)
		s.raiseShared(p, r)
	case !alone && len(s.queues[r.Key]) == 0 && s.sharedCount(r.Key) < placesOf(r.Token):
		mine = s.enter(r, r.Token, r.Token)
	case r.Join || !alone && len(s.queues[r.Key]) > 0:
		s.join(r.Key, r.Token)
		if !alone {
			if mine, hinted = s.admit(r, r.Token); !mine && !r.Join && !known {
				s.leaveQueue(r)
			}
		}
	}
	waiting := s.queues[r.Key]
	if mine {
		answer = store.Answer{Granted: true, Waiting: len(waiting)}
		if limit.IsShared() {
			answer.Fence, answer.Fences = s.phaseNumber(r)
		} else {
			answer.Fence, answer.Fences = s.reserve(r)
		}
		return answer
	}
	first := len(waiting) > 0 && waiting[0] == r.Token
	if p = s.out(r.Key); p != nil {
		return s.refusedByShared(r, p, first)
	}
	holder := s.live(r.Key)
	answer = store.Answer{Holder: holder.value, Remaining: time.Until(holder.until)}
	if first {
		if answer.ForeignHolder = !strings.Contains(holder.value, ":"); !answer.ForeignHolder && !hinted {
			s.sendHint(r.Key, holder.value)
		}
	}
	return answer
}

// refusedByShared returns the answer to a token that was not granted because of shared leases.
func (s *fakeServer) refusedByShared(r storetest.AnyRequest, p *phase, first bool) store.Answer {
	tokens := slices.SortedFunc(maps.Keys(p.leases), func(a, b string) int {
		return cmp.Or(p.leases[a].Compare(p.leases[b]), strings.Compare(a, b))
	})
	if first {
		p.head, p.headUntil = r.Token, time.Now().Add(r.Claim+headGrace)
		for _, token := range tokens[:min(len(tokens), maxAcquiring)] {
			s.sendHint(r.Key, token)
		}
	}
	until := p.headUntil
	if over := len(tokens) - placesOf(r.Token); over >= 0 {
		until = p.leases[tokens[over]]
	}
	return store.Answer{Shared: true, Remaining: max(time.Until(until), 0)}
}

// phaseNumber returns the fencing number of the phase, if the request wants it.
func (s *fakeServer) phaseNumber(r storetest.AnyRequest) (number int64, count int) {
	if r.Fences == 0 {
		return 0, 0
	}
	p := s.phases[r.Key]
	if p.number == 0 {
		r.Fences = 1
		p.number, _ = s.reserve(r)
	}
	return p.number, 1
}

// isBriefShared reports whether a request for a shared lease may be refused without the holder.
func isBriefShared(r storetest.AnyRequest) bool {
	return limitOf(r.Token).IsShared() && !r.Join && !r.WithHolder && r.Fences == 0
}

// hasRoom reports whether a shared lease may be out beside those of the key.
func (s *fakeServer) hasRoom(r storetest.AnyRequest, value string) bool {
	p := s.out(r.Key)
	if value != "" && p == nil {
		return value == r.Token
	}
	return p == nil || !p.leases[r.Token].IsZero() || len(p.leases) < placesOf(r.Token)
}

// raiseShared raises the life of a shared lease.
func (s *fakeServer) raiseShared(p *phase, r storetest.AnyRequest) {
	if until := time.Now().Add(r.TTL); until.After(p.leases[r.Token]) {
		p.leases[r.Token] = until
	}
	s.settle(r.Key)
}

// give ends the lease of the token, if it has one, and grants the key to those that wait.
// rejoin joins the end of the queue.
func (s *fakeServer) give(r storetest.AnyRequest, value string) store.ReleaseStatus {
	s.leaveQueue(r)
	p := s.out(r.Key)
	switch {
	case p == nil && value == r.Token:
		delete(s.keys, r.Key)
	case p != nil && !p.leases[r.Token].IsZero():
		delete(p.leases, r.Token)
		s.settle(r.Key)
	default:
		if p != nil {
			s.admit(r, "")
		}
		return store.NotHeld
	}
	p = s.out(r.Key)
	mine, others := r.Rejoin != "" && p != nil && !p.leases[r.Rejoin].IsZero(), false
	if mine {
		s.admit(r, "")
	} else {
		if r.Rejoin != "" {
			s.join(r.Key, r.Rejoin)
		}
		mine, others = s.admit(r, r.Rejoin)
	}
	switch {
	case mine:
		return store.Kept
	case others || r.Rejoin != "":
		return store.Handed
	default:
		return store.Freed
	}
}

// sharedTokens returns the tokens of the shared leases of a key that are out.
func (s *fakeServer) sharedTokens(key string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live(key)
	if p := s.out(key); p != nil {
		return slices.Sorted(maps.Keys(p.leases))
	}
	return nil
}
