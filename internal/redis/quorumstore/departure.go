package quorumstore

import "github.com/reqlock/reqlock/internal/store"

// A departure is what is known about the withdrawal that the release of a lease has sent to a
// server. A fast holder releases its lease before the last servers have answered that they have
// voted for it. Mostly they have received the vote and the withdrawal in this order, so that
// another withdrawal is not needed.
type departure int8

const (
	stays departure = iota
	leaving
	// strayed: the server has answered meanwhile that it has voted. It may have voted after the
	// withdrawal.
	strayed
	// left: the withdrawal has found the vote.
	left
)

// isStray reports whether a vote that arrives after the end of the lease has to be withdrawn. If
// the vote was requested or sent twice, the server may vote after the withdrawal has found a vote.
func (b *ballot) isStray(i int, answer store.Answer) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.departures == nil || answer.SentTwice || b.asks[i] > 1 {
		return true
	}
	switch b.departures[i] {
	case leaving:
		b.departures[i] = strayed
		return false
	case stays:
		return true
	default:
		return false
	}
}

// endDeparture notes the reply to the withdrawal of a release. If that has not found the vote of
// which the server has told since, the vote is withdrawn again.
func (b *ballot) endDeparture(i int, found bool) {
	b.mu.Lock()
	isStray := b.departures[i] == strayed && !found
	if b.departures[i] = stays; found {
		b.departures[i] = left
	}
	b.mu.Unlock()
	if isStray {
		b.withdraw(i, b.request.Bound, func() {})
	}
}
