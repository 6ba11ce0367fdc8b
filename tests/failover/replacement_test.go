package failover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A lockState is the state of a lock after the replacement of its master.
type lockState string

const (
	refused      lockState = "refused"       // no process got it: Lock returned that Redis is unavailable
	kept         lockState = "kept"          // its holder has kept it, and no other process gets it
	grantedTwice lockState = "granted twice" // another process got it while the holder trusted its lease
	unspecified  lockState = ""              // any of these
)

// A replacement is a way to replace a master with two replicas shortly after locks were
// granted.
type replacement struct {
	// before runs before the locks are requested.
	before func(master, first, second *redistest.Server)
	// victims returns the servers that are killed afterwards. Then no replica is cut off
	// any more.
	victims func(master, first, second *redistest.Server) []*redistest.Server
	// timeout is how long replicas may take to acknowledge a lock: longer than connected
	// replicas take on a busy machine, and at most a quarter of the timeout of a command.
	timeout time.Duration
	// states are the states of locks that 0, 1 and 2 replicas had to acknowledge.
	states []lockState
}

func killMaster(master, _, _ *redistest.Server) []*redistest.Server {
	return []*redistest.Server{master}
}

var replacements = map[string]replacement{
	"neither replica has the locks": {
		before:  func(master, _, _ *redistest.Server) { master.RefuseReplicas(true) },
		victims: killMaster, timeout: 100 * time.Millisecond,
		states: []lockState{grantedTwice, refused, refused},
	},
	// Replicas mostly have a lock that they need not acknowledge, without a guarantee.
	"both replicas have the locks": {
		before:  func(_, _, _ *redistest.Server) {},
		victims: killMaster, timeout: patience / 12,
		states: []lockState{unspecified, kept, kept},
	},
	// The acknowledgement of one replica is not enough, because it can fail together with
	// the master. If it survives, Sentinel mostly promotes it, since it has more data,
	// but not always. So only the acknowledgement of all replicas is a guarantee.
	"one replica has the locks, and the other is promoted": {
		before: func(_, first, _ *redistest.Server) { first.RefuseMaster(true) },
		victims: func(master, _, second *redistest.Server) []*redistest.Server {
			return []*redistest.Server{second, master}
		},
		// Sentinel promotes no replica that was without its master for five seconds. The
		// first replica is without it while the lock of two replicas waits for this time.
		timeout: 1200 * time.Millisecond,
		states:  []lockState{grantedTwice, grantedTwice, refused},
	},
}

// failoversEnv is how many failovers each replacement has, such as "50"; one if it is not set.
const failoversEnv = "REQLOCK_FAILOVERS"

// A master is replaced while only some of its replicas have its locks, and the holders are
// not informed. Which replicas have the locks does not depend on timing, so the result is
// the same each time.
func TestLocksGrantedTwiceAfterFailover(t *testing.T) {
	parallelInFastTier(t)
	for name, r := range replacements {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rounds := suite.Count(t, failoversEnv, 1) // each has the same result
			if os.Getenv(failoversEnv) == "" {
				suite.Full(t, "replaces a master, and waits for a TTL")
			}
			d := &deployment{sentinels: redistest.StartSentinel(t)}
			counts := make([]counter, len(r.states))
			for round := range rounds {
				t.Run(strconv.Itoa(round), func(t *testing.T) {
					for n, state := range r.run(t, d) {
						counts[n].add(string(state))
					}
				})
			}
			table := []string{fmt.Sprintf("%s: %d failovers", name, rounds)}
			for n := range counts {
				table = append(table, fmt.Sprintf("  locks that %d replicas had to acknowledge: %v", n, &counts[n]))
			}
			t.Log(strings.Join(table, "\n"))
		})
	}
}

// outageTTL is the TTL of these locks. A third of it is the time until their first
// renewal, and longer than a failover with the restart of the killed servers.
const outageTTL = 9 * patience

// run replaces the master once. It returns the state of the lock for each number of
// replicas that had to acknowledge it.
func (r replacement) run(t *testing.T, d *deployment) []lockState {
	t.Helper()
	master, replicas := d.sentinels.Master(), d.sentinels.Replicas()
	first, second := replicas[0], replicas[1]
	var locks []*contestedLock
	for n := range r.states {
		locks = append(locks, r.newLock(t, d, n))
		locks[n].prepare(t)
	}
	r.before(master, first, second)
	// The lock that waits for no replica comes last: WAIT of another lock also waits for
	// all writes before it.
	for n := range locks {
		locks[len(locks)-1-n].lock(t)
	}
	killed := r.victims(master, first, second)
	for _, server := range killed {
		server.Kill()
	}
	first.RefuseMaster(false) // its master is dead
	d.sentinels.AwaitFailover(master)
	for _, server := range killed {
		server.Restart()
	}
	d.sentinels.Await() // the second process may need replicas, too

	states := make([]lockState, len(locks))
	for n, l := range locks {
		states[n] = l.state(t)
		if want := r.states[n]; want != unspecified && states[n] != want {
			t.Errorf("the lock that %d replicas had to acknowledge was %s, want %s", n, states[n], want)
		}
	}
	return states
}

// A contestedLock is a lock that two processes request.
type contestedLock struct {
	first, second *process
	key           string
	lease         *core.Lease // nil if the first process was refused
}

// poolSends is the number of a client whose commands go through the pipeline's own
// goroutines, not through callers. A command that a caller sends has 50 ms, including the
// connection to the new master, and is then resent. Then it is not known whether the first
// send of a release has freed the key, and the holder does not learn that it had lost the
// lock. Other commands are resent only after half of their timeout.
const poolSends = 1

func (r replacement) newLock(t *testing.T, d *deployment, replicas int) *contestedLock {
	t.Helper()
	opts := []core.Option{core.WithTTL(outageTTL), core.WithCommandTimeout(patience / 3), core.WithWait(0)}
	if replicas > 0 {
		opts = append(opts, core.WithReplicas(replicas, r.timeout))
	}
	return &contestedLock{
		first:  newProcess(t, d.client(t, poolSends, nil), opts...),
		second: newProcess(t, d.client(t, poolSends, nil), opts...),
		key:    fmt.Sprintf("%s-%d", t.Name(), replicas),
	}
}

// prepare locks another key, so that the server has the script.
func (l *contestedLock) prepare(t *testing.T) {
	t.Helper()
	lease, err := l.first.locks.Lock(t.Context(), l.key+"-before")
	if err == nil {
		err = lease.Release(t.Context())
	}
	if err != nil && !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("a lock before the failover: %v", err)
	}
}

func (l *contestedLock) lock(t *testing.T) {
	t.Helper()
	lease, err := l.first.locks.Lock(t.Context(), l.key)
	switch {
	case err == nil:
		l.lease = lease
	case !errors.Is(err, core.ErrUnavailable):
		t.Errorf("a free lock: %v", err)
	}
}

// state makes the second process request the lock, releases all leases, and returns the
// state of the lock.
func (l *contestedLock) state(t *testing.T) lockState {
	t.Helper()
	if l.lease == nil {
		return refused
	}
	other, err := l.second.locks.Lock(t.Context(), l.key)
	isTrusted := l.lease.Context().Err() == nil && time.Now().Before(l.lease.ValidUntil())
	released := l.lease.Release(context.WithoutCancel(t.Context()))
	switch {
	case !isTrusted:
		t.Errorf("a lease ended before its first renewal: %v", context.Cause(l.lease.Context()))
	case err == nil:
		if !errors.Is(released, core.ErrLost) {
			t.Errorf("a lock that another process holds was released with %v", released)
		}
		if err := other.Release(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("release by the process that holds it: %v", err)
		}
		return grantedTwice
	case errors.Is(err, core.ErrBusy) && released == nil:
		return kept
	}
	t.Errorf("a lock after a failover: the second process got %v, release by the first %v", err, released)
	return unspecified
}
