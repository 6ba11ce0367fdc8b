package quorumstore

import (
	"sync"
	"time"

	"github.com/reqlock/reqlock/internal/inflight"
	"github.com/reqlock/reqlock/internal/redis/redisstore"
	"github.com/reqlock/reqlock/internal/store"
)

// debtPause is how long after a failure a server is tried again that has a vote
// which is to be taken back.
const debtPause = 250 * time.Millisecond

// debts are the votes that one server may have for ballots that are over. It was told
// so in vain. Each is taken back when the server answers again, unless its time is
// over by then: with fewer servers down than a minority, a vote that stays behind may
// be the one that another ballot lacks. One of them is tried at a time.
type debts struct {
	server server
	work   *inflight.Counter

	mu     sync.Mutex
	owed   map[ballotID]debt
	trying bool
	closed bool
}

// A debt is a vote that is to be taken back.
type debt struct {
	request redisstore.WithdrawRequest
	until   time.Time // when it has run out
}

// owe notes that the server did not answer to the withdrawal of a vote that may live for
// so long.
func (d *debts) owe(r redisstore.WithdrawRequest, life time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return
	}
	r.Wake = true
	if d.owed == nil {
		d.owed = make(map[ballotID]debt)
	}
	if r.Waiter == "" { // one that was to leave the line with this vote still is
		r.Waiter = d.owed[ballotIDOf(r.Target)].request.Waiter
	}
	d.owed[ballotIDOf(r.Target)] = debt{r, time.Now().Add(life)}
	d.tryLater()
}

// tryLater has the server tried in a while. The caller holds d.mu.
func (d *debts) tryLater() {
	if d.trying || len(d.owed) == 0 || d.closed {
		return
	}
	d.trying = true
	d.work.Add()
	time.AfterFunc(debtPause, func() {
		defer d.work.Done()
		d.try()
	})
}

// try takes one vote back, and all others if that was answered.
func (d *debts) try() {
	one, ok := d.next()
	if !ok {
		return
	}
	d.server.Withdraw(one, func(_ store.ReleaseResult, err error) {
		for _, other := range d.tried(one, err) {
			d.server.Withdraw(other.request, func(_ store.ReleaseResult, err error) {
				if retries(err) {
					d.owe(other.request, time.Until(other.until))
				}
			})
		}
	})
}

// next returns a vote to take back, and forgets those that have run out.
func (d *debts) next() (r redisstore.WithdrawRequest, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for p, one := range d.owed {
		if !now.Before(one.until) {
			delete(d.owed, p)
			continue
		}
		r, ok = one.request, true
	}
	d.trying = ok && !d.closed
	return r, d.trying
}

// tried takes in the answer to one, and returns those that can follow.
func (d *debts) tried(one redisstore.WithdrawRequest, err error) (rest []debt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.trying = false
	if retries(err) {
		d.tryLater()
		return nil
	}
	if d.owed[ballotIDOf(one.Target)].request.Waiter == one.Waiter { // else more was owed meanwhile
		delete(d.owed, ballotIDOf(one.Target))
	}
	for _, other := range d.owed {
		rest = append(rest, other)
	}
	d.owed = nil
	return rest
}

// close forgets all of them.
func (d *debts) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed, d.owed = true, nil
}

// retries reports whether a command with this error may do better later.
func retries(err error) bool {
	if err == nil {
		return false
	}
	return store.FaultOf(err).Temporary
}
