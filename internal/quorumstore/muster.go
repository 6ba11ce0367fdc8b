package quorumstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// A muster sees to it that the servers are different ones, and that none votes
// that has just started: it may have forgotten for whom it voted before, and
// whoever has that vote may count on it until the end of a TTL.
//
// It looks at each connection as soon as that is made. A connection does not
// outlive the process to which it leads, so what is seen then stays true.
type muster struct {
	quarantine time.Duration

	mu   sync.Mutex
	runs []string // by server, the id of the process that was met last
	gone []bool   // by server, whether it was asked in vain
	same error    // once two of them were the same
}

func newMuster(servers int, quarantine time.Duration) *muster {
	return &muster{quarantine: quarantine, runs: make([]string, servers), gone: make([]bool, servers)}
}

// What keeps a server from voting.
var (
	errNameless = errors.New("a server does not tell its run_id and its uptime_in_seconds in INFO server, " +
		"without which nobody can tell servers apart, and whether they have just started")
	errDouble = errors.New("two clients of the quorum lead to the same server, which has one vote")
)

// admit refuses a connection to a server that is not to vote.
func (m *muster) admit(ctx context.Context, i int, conn *redis.Conn) error {
	said, err := conn.Info(ctx, "server").Result()
	if err != nil {
		return fmt.Errorf("INFO server, by which a quorum knows its servers: %w", err)
	}
	run, up, ok := identityOf(said)
	if !ok {
		return errNameless
	}
	if err := m.meet(i, run); err != nil {
		return err
	}
	if up < m.quarantine {
		return fmt.Errorf("the server has run for %v, and gives no votes before %v: see WithQuarantine", max(up, 0), m.quarantine)
	}
	return nil
}

// meet notes which process is behind a client. It refuses one that is behind
// another client too.
func (m *muster) meet(i int, run string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.runs[i] = run
	m.same = nil
	seen := make(map[string]int, len(m.runs))
	for j, other := range m.runs {
		first, twice := seen[other]
		if other != "" && twice {
			m.same = fmt.Errorf("%w: clients %d and %d", errDouble, first, j)
			return m.same
		}
		seen[other] = j
	}
	return nil
}

// double returns why the servers are no quorum, if two of them are the same.
func (m *muster) double() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.same
}

// met reports whether the server has been seen, or was asked in vain: nobody waits
// for such a one to see whether it is one of the others.
func (m *muster) met(i int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.runs[i] != "" || m.gone[i]
}

// miss notes that the server was asked in vain.
func (m *muster) miss(i int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gone[i] = true
}

// identityOf reads what INFO server says of the process. Its uptime is a number of
// whole seconds, of which the first may have been any part of one.
func identityOf(info string) (run string, up time.Duration, ok bool) {
	var seconds string
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "run_id":
			run = value
		case "uptime_in_seconds":
			seconds = value
		}
	}
	n, err := strconv.ParseInt(seconds, 10, 32)
	return run, time.Duration(n-1) * time.Second, run != "" && err == nil && n >= 0
}
