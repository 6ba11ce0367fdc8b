package quorumstore

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// A count is how the servers have voted so far.
type count struct{ granted, refused, left int }

func (b *ballot) count() (c count) {
	for _, v := range b.votes {
		switch {
		case !v.answered:
			c.left++
		case v.answer.Granted:
			c.granted++
		case v.err == nil:
			c.refused++
		}
	}
	return c
}

// known reports whether it is known why the ballot is lost: a majority has answered,
// and others have votes, or no majority will. Until then nobody can say that the key
// is held, nor that it is not.
func (b *ballot) known(c count) bool {
	answers := c.granted + c.refused
	failures := len(b.votes) - answers - c.left
	return answers >= b.store.majority || failures > len(b.votes)-b.store.majority
}

// knowsRest reports whether each server that has not answered is known to be none
// of the others.
func (b *ballot) knowsRest() bool {
	for i, v := range b.votes {
		if !v.answered && !b.store.muster.met(i) {
			return false
		}
	}
	return true
}

// granted returns the answer of a majority. Its life counts from when the first of
// these votes was asked for.
func (b *ballot) granted() (store.Answer, error) {
	if same := b.store.muster.double(); same != nil {
		return store.Answer{}, &store.Fault{Unknown: true, Err: same}
	}
	answer := store.Answer{Granted: true}
	for _, v := range b.votes {
		if !v.answer.Granted {
			continue
		}
		if answer.Since.IsZero() || v.answer.Since.Before(answer.Since) {
			answer.Since = v.answer.Since
		}
		answer.Waiting = max(answer.Waiting, v.answer.Waiting)
	}
	return answer, nil
}

// refused returns why there is no majority: too many servers have not answered, or
// others have their votes.
func (b *ballot) refused() (store.Answer, error) {
	if same := b.store.muster.double(); same != nil {
		return store.Answer{}, &store.Fault{Err: same}
	}
	var failures []error
	holders := make(map[string]int)
	answer := store.Answer{}
	for _, v := range b.votes {
		switch {
		case v.err != nil:
			failures = append(failures, v.err)
		case v.answered && !v.answer.Granted:
			holder := v.answer.Holder
			holders[holder]++
			if holders[holder] > holders[answer.Holder] || holder == answer.Holder {
				answer.Holder, answer.ForeignHolder = holder, v.answer.ForeignHolder
			}
		}
	}
	if err := b.store.failure(failures); err != nil {
		return store.Answer{}, err
	}
	answer.SplitVote = holders[answer.Holder] < b.store.majority
	answer.Remaining = b.remaining()
	return answer, nil
}

// remaining returns in how long a majority of votes will be free, if nobody does
// anything; negative if nobody knows.
func (b *ballot) remaining() time.Duration {
	const never = time.Duration(math.MaxInt64)
	lives := make([]time.Duration, len(b.votes))
	for i, v := range b.votes {
		switch {
		case v.answer.Granted:
		case v.answered && v.err == nil && v.answer.Remaining > 0:
			lives[i] = v.answer.Remaining
		default:
			lives[i] = never
		}
	}
	slices.Sort(lives)
	if life := lives[b.store.majority-1]; life != never {
		return life
	}
	return -1
}

// failure returns the fault of so many servers, if the others are no majority. It
// passes if as many of these failures do as a majority lacks.
func (s *Store) failure(failures []error) error {
	spare := len(s.servers) - s.majority
	if len(failures) <= spare {
		return nil
	}
	fault := &store.Fault{}
	lasting := 0
	why := failures[0]
	for _, err := range failures {
		one := store.FaultOf(err)
		fault.Unknown = fault.Unknown || one.Unknown
		if !one.Temporary {
			lasting++
			if lasting > spare {
				why = err
			}
		}
	}
	fault.Temporary = lasting <= spare
	fault.Err = fmt.Errorf("no majority: %d of %d servers failed, one with: %w", len(failures), len(s.servers), why)
	return fault
}

// blame returns the fault of a transition of which nobody knows what became, because
// of these failures: that of a missing majority or, where one is left, of the first.
func (s *Store) blame(failures []error) error {
	if err := s.failure(failures); err != nil {
		return err
	}
	first := store.FaultOf(failures[0])
	return &store.Fault{Unknown: first.Unknown, Temporary: first.Temporary, Err: failures[0]}
}
