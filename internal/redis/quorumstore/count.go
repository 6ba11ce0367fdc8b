package quorumstore

import (
	"math"
	"slices"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// A count is the number of servers that granted a ballot, that refused it, and that have not
// replied.
type count struct{ granted, refused, missing int }

func (b *ballot) count() (c count) {
	for _, v := range b.votes {
		switch {
		case !v.answered:
			c.missing++
		case v.answer.Granted:
			c.granted++
		case v.err == nil:
			c.refused++
		}
	}
	return c
}

// reasonKnown reports whether the reason for the loss of a ballot is known. Either a majority
// has voted, so other ballots have votes, or no majority can vote. Before that, the key may
// be held or free.
func (b *ballot) reasonKnown(c count) bool {
	answers := c.granted + c.refused
	failures := len(b.votes) - answers - c.missing
	return answers >= b.store.majority || failures > len(b.votes)-b.store.majority
}

// restKnown reports whether each server that has not replied is known. An unknown server may
// be the same as a server that has replied.
func (b *ballot) restKnown() bool {
	for i, v := range b.votes {
		if !v.answered && !b.store.membership.known(i) {
			return false
		}
	}
	return true
}

// granted returns the answer of a majority. The lease is valid from the time when the first
// of these votes was requested.
func (b *ballot) granted() (store.Answer, error) {
	if duplicate := b.store.membership.duplicate(); duplicate != nil {
		return store.Answer{}, &store.Fault{Unknown: true, Err: duplicate}
	}
	answer := store.Answer{Granted: true, Waiting: store.WaitingUnknown}
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

// refused returns why there is no majority: too many servers failed, or other ballots have
// their votes.
func (b *ballot) refused() (store.Answer, error) {
	if duplicate := b.store.membership.duplicate(); duplicate != nil {
		return store.Answer{}, &store.Fault{Err: duplicate}
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
	if err := b.store.missingMajority(failures); err != nil {
		return store.Answer{}, err
	}
	answer.SplitVote = holders[answer.Holder] < b.store.majority
	answer.Remaining = b.remaining()
	return answer, nil
}

// remaining returns after which time a majority of the votes expires. It is negative if that
// time is unknown, and 0 if the servers were not asked.
func (b *ballot) remaining() time.Duration {
	const never = time.Duration(math.MaxInt64)
	ttls := make([]time.Duration, len(b.votes))
	for i, v := range b.votes {
		switch {
		case v.answer.Granted:
		case v.answer.Holder != "" && v.answer.Remaining == 0:
			return 0
		case v.answer.Remaining > 0:
			ttls[i] = v.answer.Remaining
		default:
			ttls[i] = never
		}
	}
	slices.Sort(ttls)
	if ttl := ttls[b.store.majority-1]; ttl != never {
		return ttl
	}
	return -1
}
