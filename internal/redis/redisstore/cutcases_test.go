package redisstore

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// In the states of a cutCase these stand for the token of its request, for the token that
// rejoins, and for a key of a wrong type.
const (
	ours  = "<ours>"
	next  = "<next>"
	aList = "<a list>"

	// numbered is a marker with a fencing number.
	numbered = "<a number>"
)

// A cutCase is a request of a batch, on a key of its own. after is the state after it has run
// once or twice.
type cutCase struct {
	key    string
	do     sender
	fences int
	join   bool
	rejoin bool
	limit  store.Limit
	before storetest.State
	after  storetest.State
	want   string // the answer
	again  string // the answer to the second run; "" means want
}

// A sender sends a request and reports the answer as text.
type sender func(*Store, storetest.AnyRequest, func(result))

// A result is an answer as text, with the parts of the answer that a text cannot predict.
type result struct {
	text   string
	since  time.Time
	fences block
	at     time.Time // when the answer arrived
}

// Texts of answers. The outcome of a lost command is unknown.
const (
	textTaken     = "granted, -1 waiting"
	textNotOurs   = "not ours"
	textWrongType = "WRONGTYPE"
	textLost      = "fault, temporary, unknown"
)

// describeFault returns a fault as text: an error of the server by its first word.
func describeFault(err error) string {
	var fault *store.Fault
	if !errors.As(err, &fault) {
		return fmt.Sprintf("%v, not a fault", err)
	}
	text := "fault"
	if !command.IsTransport(fault) {
		text, _, _ = strings.Cut(err.Error(), " ")
	}
	if fault.Temporary {
		text += ", temporary"
	}
	if fault.Unknown {
		text += ", unknown"
	}
	return text
}

func reportAnswer(report func(result)) func(store.Answer, error) {
	return func(a store.Answer, err error) {
		text := "held by " + a.Holder
		switch {
		case err != nil:
			text = describeFault(err)
		case a.Verdict != store.Undecided:
			text = [...]string{"", "done", "sealed", "mismatch", "interrupted"}[a.Verdict] + string(a.Record)
		case a.Granted:
			text = fmt.Sprintf("granted, %d waiting", a.Waiting)
			if a.Number > 0 {
				text += fmt.Sprintf(", attempt %d", a.Number)
			}
		case a.Shared:
			text = "shared leases are out"
		case a.Running:
			text += ", running"
		case a.ForeignHolder:
			text += ", foreign"
		}
		report(result{text, a.Since, block{a.Fence, int64(a.Fences)}, time.Now()})
	}
}

func sendTake(s *Store, r storetest.AnyRequest, report func(result)) {
	s.Take(r.Take(), reportAnswer(report))
}

func sendEnqueue(s *Store, r storetest.AnyRequest, report func(result)) {
	s.Enqueue(r.Enqueue(), reportAnswer(report))
}

func sendRenew(s *Store, r storetest.AnyRequest, report func(result)) {
	s.Renew(r.Renew(), func(a store.Renewal, err error) {
		text := "not held"
		switch {
		case err != nil:
			text = describeFault(err)
		case a.Held:
			text = fmt.Sprintf("held, %d waiting", a.Waiting)
		}
		report(result{text, a.Since, block{a.Fence, int64(a.Fences)}, time.Now()})
	})
}

func sendRelease(s *Store, r storetest.AnyRequest, report func(result)) {
	s.Release(r.Release(), func(a store.ReleaseResult, err error) {
		text := [...]string{textNotOurs, "freed", "handed", "kept", "unsure"}[a.Status]
		switch {
		case err != nil:
			text = describeFault(err)
		case r.Attempt != nil:
			text += [...]string{", not stored", ", stored", ", restored"}[a.Record]
		}
		report(result{text, a.Since, block{}, time.Now()})
	})
}

// takeCases is a batch of the lane of takes.
func takeCases() []cutCase {
	return []cutCase{
		{key: "x0", do: sendTake, after: storetest.State{Value: ours, TTL: storetest.TTL}, want: textTaken},
		{
			key: "x1", do: sendTake, before: storetest.State{Value: "them1", TTL: time.Hour},
			after: storetest.State{Value: "them1", TTL: time.Hour}, want: "held by them1",
		},
		{key: "x2", do: sendTake, before: storetest.State{Value: aList}, after: storetest.State{Value: aList}, want: textWrongType},
		{
			key: "x3", do: sendEnqueue, join: true, fences: 8,
			after: storetest.State{Value: ours, TTL: storetest.TTL}, want: "granted, 0 waiting",
		},
		{
			key: "x4", do: sendEnqueue, join: true, before: storetest.State{Value: "them4", TTL: time.Hour},
			after: storetest.State{Value: "them4", TTL: time.Hour, Queue: []string{ours}}, want: "held by them4, foreign",
		},
		{
			key: "x5", do: sendEnqueue, before: storetest.State{Value: "them5", TTL: time.Hour, Queue: []string{storetest.Bob1}},
			after: storetest.State{Value: "them5", TTL: time.Hour, Queue: []string{storetest.Bob1}}, want: "held by them5",
		},
		{key: "x6", do: sendEnqueue, join: true, before: storetest.State{Value: aList}, after: storetest.State{Value: aList}, want: textWrongType},
		{
			key: "x7", do: sendEnqueue, join: true, fences: 64, before: storetest.State{Value: ours, TTL: storetest.Claim, Queue: []string{storetest.Eve1, ours}},
			after: storetest.State{Value: ours, TTL: storetest.TTL, Queue: []string{storetest.Eve1}}, want: "granted, 1 waiting",
		},
		{
			key: "x8", do: sendEnqueue, join: true, before: storetest.State{Queue: []string{storetest.Eve1, storetest.Bob1}}, // bob listens
			after: storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Queue: []string{ours}}, want: "held by " + storetest.Bob1,
		},
		{key: "x9", do: sendTake, after: storetest.State{Value: ours, TTL: storetest.TTL}, want: textTaken},
		{
			key: "x10", do: sendEnqueue, limit: store.Unlimited, join: true, // the common case
			after: storetest.State{Value: storetest.Marker, TTL: storetest.TTL, Shared: leases{ours: storetest.TTL}}, want: "granted, 0 waiting",
		},
		{
			key: "x11", do: sendEnqueue, limit: 2, join: true, fences: 8, before: storetest.State{Value: ours, TTL: storetest.Claim, Queue: []string{storetest.Eve1}},
			after: storetest.State{Value: numbered, TTL: storetest.TTL, Queue: []string{storetest.Eve1}, Shared: leases{ours: storetest.TTL}},
			want:  "granted, 1 waiting",
		},
		{
			key: "x12", do: sendEnqueue, limit: 1,
			before: storetest.State{Value: storetest.Marker, TTL: time.Hour, Shared: leases{storetest.MeReader1: time.Hour}},
			after:  storetest.State{Value: storetest.Marker, TTL: time.Hour, Shared: leases{storetest.MeReader1: time.Hour}},
			want:   "shared leases are out",
		},
	}
}

type leases = map[string]time.Duration

// holderCases is a batch of the lane of renewals and releases. The second run of a release finds
// no key, or the key of another token.
func holderCases() []cutCase {
	held := storetest.State{Value: ours, TTL: storetest.Claim}
	return []cutCase{
		{key: "x0", do: sendRelease, before: held, want: "freed", again: textNotOurs},
		{
			key: "x1", do: sendRelease, rejoin: true, before: held,
			after: storetest.State{Value: next, TTL: storetest.TTL}, want: "kept", again: textNotOurs,
		},
		{
			key: "x2", do: sendRelease, before: storetest.State{Value: ours, TTL: storetest.Claim, Queue: []string{storetest.Eve1, storetest.Bob1, storetest.Bob2}},
			after: storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Queue: []string{storetest.Bob2}}, want: "handed", again: textNotOurs,
		},
		{
			key: "x3", do: sendRelease, rejoin: true, before: storetest.State{Value: ours, TTL: storetest.Claim, Queue: []string{storetest.Bob1, storetest.Eve1}},
			after: storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Queue: []string{storetest.Eve1, next}}, want: "handed", again: textNotOurs,
		},
		{
			key: "x4", do: sendRelease, rejoin: true, before: storetest.State{Value: storetest.Bob1, TTL: time.Hour, Queue: []string{ours, storetest.Eve1}},
			after: storetest.State{Value: storetest.Bob1, TTL: time.Hour, Queue: []string{storetest.Eve1}}, want: textNotOurs,
		},
		{key: "x5", do: sendRelease, before: storetest.State{Value: aList}, after: storetest.State{Value: aList}, want: textWrongType},
		{
			key: "x6", do: sendRenew, fences: 8, before: storetest.State{Value: ours, TTL: storetest.Claim, Queue: []string{storetest.Bob1}},
			after: storetest.State{Value: ours, TTL: storetest.TTL, Queue: []string{storetest.Bob1}}, want: "held, 1 waiting",
		},
		{key: "x7", do: sendRenew, before: held, after: storetest.State{Value: ours, TTL: storetest.TTL}, want: "held, 0 waiting"},
		{
			key: "x8", do: sendRenew, fences: 8, before: storetest.State{Value: "them8", TTL: time.Hour},
			after: storetest.State{Value: "them8", TTL: time.Hour}, want: "not held",
		},
		{
			key: "x9", do: sendRelease, limit: 2,
			before: storetest.State{Value: storetest.Marker, TTL: storetest.TTL, Shared: leases{ours: storetest.TTL, storetest.MeReader1: storetest.Claim}},
			after:  storetest.State{Value: storetest.Marker, TTL: storetest.Claim, Shared: leases{storetest.MeReader1: storetest.Claim}},
			want:   "freed", again: textNotOurs,
		},
		{
			key: "x10", do: sendRelease, rejoin: true, limit: 2,
			before: storetest.State{Value: storetest.Marker, TTL: storetest.TTL, Queue: []string{storetest.Bob1}, Shared: leases{ours: storetest.TTL}},
			after:  storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Queue: []string{next}}, want: "handed", again: textNotOurs,
		},
		{
			key: "x11", do: sendRenew, limit: 2,
			before: storetest.State{Value: storetest.Marker, TTL: storetest.Claim, Shared: leases{ours: storetest.Claim}},
			after:  storetest.State{Value: storetest.Marker, TTL: storetest.TTL, Shared: leases{ours: storetest.TTL}}, want: "held, 0 waiting",
		},
	}
}

type hash = map[string]string

// withTokens returns the state with the tokens of the request.
func withTokens(s storetest.State, q *storetest.AnyRequest) storetest.State {
	tokens := strings.NewReplacer(ours, q.Token, next, q.Rejoin)
	s.Value = tokens.Replace(s.Value)
	s.Queue = slices.Clone(s.Queue)
	for i, token := range s.Queue {
		s.Queue[i] = tokens.Replace(token)
	}
	shared := make(leases, len(s.Shared))
	for token, left := range s.Shared {
		shared[tokens.Replace(token)] = left
	}
	s.Shared = shared
	s.Record = maps.Clone(s.Record)
	for field, value := range s.Record {
		s.Record[field] = tokens.Replace(value)
	}
	return s
}
