package failover

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// A fate is what has become of a lock whose master was replaced.
type fate string

const (
	withheld fate = "withheld" // nobody was given it: who asked was told that Redis is unavailable
	kept     fate = "kept"     // its holder holds it still, and nobody else is given it
	doubled  fate = "doubled"  // another one was given it, while its holder believed in it
	unsure   fate = ""         // it is left to luck
)

// A succession is a way in which a master of two replicas is replaced, and what
// becomes of the locks that were taken a moment before.
type succession struct {
	// before runs before the locks are taken.
	before func(master, first, second *redistest.Server)
	// dying are those that are killed then. No replica is cut off any more.
	dying func(master, first, second *redistest.Server) []*redistest.Server
	// timeout is how long replicas have to acknowledge a lock: more than they take on
	// a busy machine, where some are there. It is at most a quarter of what a command
	// has.
	timeout time.Duration
	// fates are by how many had to.
	fates []fate
}

func masterDies(master, _, _ *redistest.Server) []*redistest.Server {
	return []*redistest.Server{master}
}

var successions = map[string]succession{
	"neither replica gets the locks": {
		before: func(master, _, _ *redistest.Server) { master.RefuseReplicas(true) },
		dying:  masterDies, timeout: 100 * time.Millisecond,
		fates: []fate{doubled, withheld, withheld},
	},
	// What nobody has acknowledged is mostly there, too. It is no promise.
	"both replicas get the locks": {
		before: func(_, _, _ *redistest.Server) {},
		dying:  masterDies, timeout: patience / 12,
		fates: []fate{unsure, kept, kept},
	},
	// One that acknowledges is not enough where it can go together with the master.
	// If it stays, Sentinel mostly promotes it, because it has more, but now and then
	// the other one. So only as many as there are promise something.
	"one replica gets the locks, and the other is promoted": {
		before: func(_, first, _ *redistest.Server) { first.RefuseMaster(true) },
		dying: func(master, _, second *redistest.Server) []*redistest.Server {
			return []*redistest.Server{second, master}
		},
		// Sentinel promotes none that was without its master for five seconds, and the
		// first one is while the lock of two waits for this time.
		timeout: 1200 * time.Millisecond,
		fates:   []fate{doubled, doubled, withheld},
	},
}

// outlasts is the TTL of these locks. A third of it is the time until their first
// renewal, and longer than the master and the killed ones may take to be back.
const outlasts = 9 * patience

// play replaces the master once, and returns what has become of a lock for each
// number of replicas that had to acknowledge it.
func (s succession) play(t *testing.T, d *deployment) []fate {
	t.Helper()
	master, replicas := d.sentinels.Master(), d.sentinels.Replicas()
	first, second := replicas[0], replicas[1]
	var claims []*claim
	for n := range s.fates {
		claims = append(claims, s.newClaim(t, d, n))
		claims[n].prepare(t)
	}
	s.before(master, first, second)
	// The lock that waits for no replica is taken last: what another one waits for is
	// all that was written before it.
	for n := range claims {
		claims[len(claims)-1-n].lock(t)
	}
	killed := s.dying(master, first, second)
	for _, server := range killed {
		server.Kill()
	}
	first.RefuseMaster(false) // from now on its master is dead
	d.sentinels.AwaitFailover(master)
	for _, server := range killed {
		server.Restart()
	}
	d.sentinels.Await() // who takes a lock may need replicas, too

	fates := make([]fate, len(claims))
	for n, c := range claims {
		fates[n] = c.fate(t)
		if want := s.fates[n]; want != unsure && fates[n] != want {
			t.Errorf("the lock that %d replicas had to acknowledge was %s, want %s", n, fates[n], want)
		}
	}
	return fates
}

// A claim is a lock that two processes want.
type claim struct {
	first, second *process
	key           string
	lease         *core.Lease // nil if the first was refused
}

// sentOnce is the number of a client with which no caller sends its own commands. A
// command that a caller sends has 50 ms, to connect to the new master too, and is
// then sent again. Whether the first send of a release has freed the key is not known
// then, and the holder is not told that it had lost the lock. Any other command is
// sent again only after half of its timeout.
const sentOnce = 1

// newClaim returns a claim on a lock that so many replicas have to acknowledge.
func (s succession) newClaim(t *testing.T, d *deployment, replicas int) *claim {
	t.Helper()
	opts := []core.Option{core.WithTTL(outlasts), core.WithCommandTimeout(patience / 3), core.WithWait(0)}
	if replicas > 0 {
		opts = append(opts, core.WithReplicas(replicas, s.timeout))
	}
	return &claim{
		first:  newProcess(t, d.client(t, sentOnce, nil), opts...),
		second: newProcess(t, d.client(t, sentOnce, nil), opts...),
		key:    fmt.Sprintf("%s-%d", t.Name(), replicas),
	}
}

// prepare takes another lock, so that the server has the script.
func (c *claim) prepare(t *testing.T) {
	t.Helper()
	lease, err := c.first.locks.Lock(t.Context(), c.key+"-before")
	if err == nil {
		err = lease.Release(t.Context())
	}
	if err != nil && !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("a lock before the failover: %v", err)
	}
}

// lock lets the first process take the lock, if it is given it.
func (c *claim) lock(t *testing.T) {
	t.Helper()
	lease, err := c.first.locks.Lock(t.Context(), c.key)
	switch {
	case err == nil:
		c.lease = lease
	case !errors.Is(err, core.ErrUnavailable):
		t.Errorf("a free lock: %v", err)
	}
}

// fate lets the second process ask for the lock, and both end.
func (c *claim) fate(t *testing.T) fate {
	t.Helper()
	if c.lease == nil {
		return withheld
	}
	other, err := c.second.locks.Lock(t.Context(), c.key)
	believed := c.lease.Context().Err() == nil && time.Now().Before(c.lease.ValidUntil())
	released := c.lease.Release(context.WithoutCancel(t.Context()))
	switch {
	case !believed:
		t.Errorf("a holder does not believe in its lock until it is to be renewed: %v", context.Cause(c.lease.Context()))
	case err == nil:
		if !errors.Is(released, core.ErrLost) {
			t.Errorf("a lock that another one holds was released with %v", released)
		}
		if err := other.Release(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("the one that holds it: %v", err)
		}
		return doubled
	case errors.Is(err, core.ErrBusy) && released == nil:
		return kept
	}
	t.Errorf("a lock after a failover: the next one was told %v, its holder %v", err, released)
	return unsure
}
