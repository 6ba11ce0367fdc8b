package quorumstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/reqlock/reqlock/internal/redis/command"
)

// A muster sees to it that the servers are different ones, and that none votes
// that has just started: it may have forgotten for whom it voted before, and
// whoever has that vote may count on it until the end of a TTL.
//
// It looks at each connection as soon as that is made. A connection does not
// outlive the process to which it leads, so what is seen then stays true; and all
// connections of one client lead to one process: see meet.
type muster struct {
	quarantine time.Duration

	mu     sync.Mutex
	places []place // by client
	same   error   // while two clients lead to the same server, or a little longer
}

// A place is what is known of the server behind a client.
type place struct {
	run   string        // the id of the process that was met last; "" is none yet
	moves int           // how often that was another one than before
	gone  bool          // it was asked in vain
	took  time.Duration // see distance
	conns map[*watched]struct{}
	// young is why the server gives no votes before until.
	young error
	until time.Time
}

func newMuster(servers int, quarantine time.Duration) *muster {
	m := &muster{quarantine: quarantine, places: make([]place, servers)}
	for i := range m.places {
		m.places[i].conns = make(map[*watched]struct{})
	}
	return m
}

// longestYouth is how long a server is not looked at that is known to give no votes:
// there may be another one behind its address by then.
const longestYouth = time.Second

// What keeps a server from voting.
var (
	errNameless = errors.New("a server does not tell its run_id and its uptime_in_seconds in INFO server, " +
		"without which nobody can tell servers apart, and whether they have just started")
	errDouble = errors.New("two clients of the quorum lead to the same server, which has one vote")
	errMoved  = errors.New("another server than before answers behind a client of the quorum")
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
	return m.grow(i, up, time.Now())
}

// grow refuses a server that has not run for long enough.
func (m *muster) grow(i int, up time.Duration, now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := &m.places[i]
	p.young = nil
	if left := m.quarantine - up; left > 0 {
		p.young = fmt.Errorf("the server has run for %v, and gives no votes before %v: see WithQuarantine", max(up, 0), m.quarantine)
		p.until = now.Add(min(left, longestYouth))
	}
	return p.young
}

// waits returns why a server need not be asked now, if so.
func (m *muster) waits(i int, now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := &m.places[i]; p.young != nil && now.Before(p.until) {
		return p.young
	}
	return nil
}

// meet notes which process is behind a client. Where it is another one than before, all
// connections of the client are closed, this one as well: none is to lead to the one
// before, which may be behind another client now.
func (m *muster) meet(i int, run string) error {
	m.mu.Lock()
	p := &m.places[i]
	var old []net.Conn
	if p.run != "" && p.run != run {
		p.moves++
		for conn := range p.conns {
			old = append(old, conn.Conn)
		}
		clear(p.conns)
	}
	p.run = run
	m.compare()
	m.mu.Unlock()
	for _, conn := range old {
		_ = conn.Close()
	}
	if old != nil {
		return errMoved
	}
	return nil
}

// compare looks for a process behind two clients. A process is behind a client as long
// as a connection leads there, or for the time in which it is not looked at.
func (m *muster) compare() {
	m.same = nil
	now, seen := time.Now(), make(map[string]int, len(m.places))
	for i := range m.places {
		p := &m.places[i]
		if p.run == "" || (len(p.conns) == 0 && !now.Before(p.until)) {
			continue
		}
		if first, twice := seen[p.run]; twice {
			m.same = fmt.Errorf("%w: clients %d and %d", errDouble, first, i)
			return
		}
		seen[p.run] = i
	}
}

// double returns why the servers are no quorum, if two of them are the same.
func (m *muster) double() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.same != nil { // it may be over, as nothing but the time tells
		m.compare()
	}
	return m.same
}

// moves returns, by client, how often another process was met behind it.
func (m *muster) moves() []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	moves := make([]int, len(m.places))
	for i, p := range m.places {
		moves[i] = p.moves
	}
	return moves
}

// moved reports whether another process was met behind a client since then. It may
// have answered to the same question behind another client before.
func (m *muster) moved(i int, since []int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.places[i].moves != since[i]
}

// met reports whether the server has been seen, or was asked in vain: nobody waits
// for such a one to see whether it is one of the others.
func (m *muster) met(i int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.places[i].run != "" || m.places[i].gone
}

// miss notes that the server was asked in vain.
func (m *muster) miss(i int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.places[i].gone, m.places[i].took = true, 0
}

// heard notes how long an answer of the server took.
func (m *muster) heard(i int, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.places[i].took = took
}

// distance returns how long the last answer of the server took; 0 if there was none, or
// it was asked in vain since.
func (m *muster) distance(i int) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.places[i].took
}

// identityOf reads what INFO server says of the process. Its uptime is a number of
// whole seconds, of which the first may have been any part of one.
func identityOf(info string) (run string, up time.Duration, ok bool) {
	fields := command.InfoFields(info)
	run = fields["run_id"]
	n, err := strconv.ParseInt(fields["uptime_in_seconds"], 10, 32)
	return run, time.Duration(n-1) * time.Second, run != "" && err == nil && n >= 0
}
