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

// In the states of a bid these stand for its token, for the one that rejoins,
// and for a key of a wrong type.
const (
	ours  = "<ours>"
	next  = "<next>"
	aList = "<a list>"
)

// A bid is one command of a batch whose connection is cut, on a key of its own:
// what it finds, what it is told, and what it leaves, however often it runs.
type bid struct {
	key    string
	do     asks
	fences int
	join   bool
	rejoin bool
	before storetest.State
	after  storetest.State
	want   string // what it is told
	again  string // what the second run is told, where that differs
}

// asks is a transition that tells its answer in words.
type asks func(*Store, storetest.AnyRequest, func(told))

// told is an answer in words, with what else there is in it.
type told struct {
	text   string
	since  time.Time
	fences block
	at     time.Time // when it was told
}

// Some of the words. Of a command that is lost, nothing is known.
const (
	sayTaken     = "granted, line of -1"
	sayNotOurs   = "not ours"
	sayWrongType = "WRONGTYPE"
	sayLost      = "fault, passing, unknown"
)

// inWords puts a fault into words: that of the server by its first one.
func inWords(err error) string {
	var fault *store.Fault
	if !errors.As(err, &fault) {
		return fmt.Sprintf("%v, which is no fault", err)
	}
	text := "fault"
	if !command.IsTransport(fault) {
		text, _, _ = strings.Cut(err.Error(), " ")
	}
	if fault.Temporary {
		text += ", passing"
	}
	if fault.Unknown {
		text += ", unknown"
	}
	return text
}

func tellAnswer(tell func(told)) func(store.Answer, error) {
	return func(a store.Answer, err error) {
		text := "held by " + a.Holder
		switch {
		case err != nil:
			text = inWords(err)
		case a.Verdict != store.Undecided:
			text = [...]string{"", "done", "sealed", "mismatch", "interrupted"}[a.Verdict] + string(a.Record)
		case a.Granted:
			text = fmt.Sprintf("granted, line of %d", a.Waiting)
			if a.Number > 0 {
				text += fmt.Sprintf(", attempt %d", a.Number)
			}
		case a.Running:
			text += ", running"
		case a.ForeignHolder:
			text += ", silent"
		}
		tell(told{text, a.Since, block{a.Fence, int64(a.Fences)}, time.Now()})
	}
}

func bidTake(s *Store, r storetest.AnyRequest, tell func(told)) { s.Take(r.Take(), tellAnswer(tell)) }
func bidEnqueue(s *Store, r storetest.AnyRequest, tell func(told)) {
	s.Enqueue(r.Enqueue(), tellAnswer(tell))
}

func bidRenew(s *Store, r storetest.AnyRequest, tell func(told)) {
	s.Renew(r.Renew(), func(a store.Renewal, err error) {
		text := "not held"
		switch {
		case err != nil:
			text = inWords(err)
		case a.Held:
			text = fmt.Sprintf("held, line of %d", a.Waiting)
		}
		tell(told{text, a.Since, block{a.Fence, int64(a.Fences)}, time.Now()})
	})
}

func bidRelease(s *Store, r storetest.AnyRequest, tell func(told)) {
	s.Release(r.Release(), func(a store.ReleaseResult, err error) {
		text := [...]string{sayNotOurs, "freed", "handed", "kept", "unsure"}[a.Status]
		switch {
		case err != nil:
			text = inWords(err)
		case r.Attempt != nil:
			text += [...]string{", not stored", ", stored", ", restored"}[a.Record]
		}
		tell(told{text, a.Since, block{}, time.Now()})
	})
}

// takeBids are a batch of the lane of those who ask.
func takeBids() []bid {
	return []bid{
		{key: "x0", do: bidTake, after: storetest.State{Value: ours, TTL: storetest.TTL}, want: sayTaken},
		{
			key: "x1", do: bidTake, before: storetest.State{Value: "them1", TTL: time.Hour},
			after: storetest.State{Value: "them1", TTL: time.Hour}, want: "held by them1",
		},
		{key: "x2", do: bidTake, before: storetest.State{Value: aList}, after: storetest.State{Value: aList}, want: sayWrongType},
		{
			key: "x3", do: bidEnqueue, join: true, fences: 8,
			after: storetest.State{Value: ours, TTL: storetest.TTL}, want: "granted, line of 0",
		},
		{
			key: "x4", do: bidEnqueue, join: true, before: storetest.State{Value: "them4", TTL: time.Hour},
			after: storetest.State{Value: "them4", TTL: time.Hour, Queue: []string{ours}}, want: "held by them4, silent",
		},
		{
			key: "x5", do: bidEnqueue, before: storetest.State{Value: "them5", TTL: time.Hour, Queue: []string{storetest.Bob1}},
			after: storetest.State{Value: "them5", TTL: time.Hour, Queue: []string{storetest.Bob1}}, want: "held by them5",
		},
		{key: "x6", do: bidEnqueue, join: true, before: storetest.State{Value: aList}, after: storetest.State{Value: aList}, want: sayWrongType},
		{
			key: "x7", do: bidEnqueue, join: true, fences: 64, before: storetest.State{Value: ours, TTL: storetest.Claim, Queue: []string{storetest.Eve1, ours}},
			after: storetest.State{Value: ours, TTL: storetest.TTL, Queue: []string{storetest.Eve1}}, want: "granted, line of 1",
		},
		{
			key: "x8", do: bidEnqueue, join: true, before: storetest.State{Queue: []string{storetest.Eve1, storetest.Bob1}}, // bob listens
			after: storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Queue: []string{ours}}, want: "held by " + storetest.Bob1,
		},
		{key: "x9", do: bidTake, after: storetest.State{Value: ours, TTL: storetest.TTL}, want: sayTaken},
	}
}

// keepBids are a batch of the lane of those who hold. What a second run of a
// release finds is another's, if anybody's.
func keepBids() []bid {
	held := storetest.State{Value: ours, TTL: storetest.Claim}
	return []bid{
		{key: "x0", do: bidRelease, before: held, want: "freed", again: sayNotOurs},
		{
			key: "x1", do: bidRelease, rejoin: true, before: held,
			after: storetest.State{Value: next, TTL: storetest.TTL}, want: "kept", again: sayNotOurs,
		},
		{
			key: "x2", do: bidRelease, before: storetest.State{Value: ours, TTL: storetest.Claim, Queue: []string{storetest.Eve1, storetest.Bob1, storetest.Bob2}},
			after: storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Queue: []string{storetest.Bob2}}, want: "handed", again: sayNotOurs,
		},
		{
			key: "x3", do: bidRelease, rejoin: true, before: storetest.State{Value: ours, TTL: storetest.Claim, Queue: []string{storetest.Bob1, storetest.Eve1}},
			after: storetest.State{Value: storetest.Bob1, TTL: storetest.Claim, Queue: []string{storetest.Eve1, next}}, want: "handed", again: sayNotOurs,
		},
		{
			key: "x4", do: bidRelease, rejoin: true, before: storetest.State{Value: storetest.Bob1, TTL: time.Hour, Queue: []string{ours, storetest.Eve1}},
			after: storetest.State{Value: storetest.Bob1, TTL: time.Hour, Queue: []string{storetest.Eve1}}, want: sayNotOurs,
		},
		{key: "x5", do: bidRelease, before: storetest.State{Value: aList}, after: storetest.State{Value: aList}, want: sayWrongType},
		{
			key: "x6", do: bidRenew, fences: 8, before: storetest.State{Value: ours, TTL: storetest.Claim, Queue: []string{storetest.Bob1}},
			after: storetest.State{Value: ours, TTL: storetest.TTL, Queue: []string{storetest.Bob1}}, want: "held, line of 1",
		},
		{key: "x7", do: bidRenew, before: held, after: storetest.State{Value: ours, TTL: storetest.TTL}, want: "held, line of 0"},
		{
			key: "x8", do: bidRenew, fences: 8, before: storetest.State{Value: "them8", TTL: time.Hour},
			after: storetest.State{Value: "them8", TTL: time.Hour}, want: "not held",
		},
	}
}

type hash = map[string]string

// withTokens returns the state with the tokens of the request in it.
func withTokens(s storetest.State, q *storetest.AnyRequest) storetest.State {
	tokens := strings.NewReplacer(ours, q.Token, next, q.Rejoin)
	s.Value = tokens.Replace(s.Value)
	s.Queue = slices.Clone(s.Queue)
	for i, token := range s.Queue {
		s.Queue[i] = tokens.Replace(token)
	}
	s.Record = maps.Clone(s.Record)
	for field, value := range s.Record {
		s.Record[field] = tokens.Replace(value)
	}
	return s
}
