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

// A membership ensures that all clients are connected to different servers, and that a server
// does not vote in the quarantine after its start. A server that has just started may have
// lost its votes, and a lease that needs such a vote is valid until the end of its TTL.
//
// The membership checks each new connection. A connection ends with the server process, so
// the result stays true for the connection. All connections of one client lead to the same
// process: see identify.
type membership struct {
	quarantine time.Duration

	mu      sync.Mutex
	members []member // by client
	same    error    // set if two clients were connected to the same server at the last check
}

// A member is the state of the server behind a client.
type member struct {
	run         string        // the run_id of the last process; "" if none was seen
	generation  int           // how often the process was replaced by another one
	unreachable bool          // a request to it has failed
	latency     time.Duration // of the last reply; 0 if there was none since the last failure
	conns       map[*trackedConn]struct{}
	// inQuarantine is why the server does not vote before quarantinedUntil.
	inQuarantine     error
	quarantinedUntil time.Time
}

func newMembership(servers int, quarantine time.Duration) *membership {
	m := &membership{quarantine: quarantine, members: make([]member, servers)}
	for i := range m.members {
		m.members[i].conns = make(map[*trackedConn]struct{})
	}
	return m
}

// maxQuarantineCheck is the longest time for which a server in quarantine is not contacted.
// After that time another server may have the same address.
const maxQuarantineCheck = time.Second

// The reasons why a server does not vote.
var (
	errNoIdentity = errors.New("INFO server has no run_id or no uptime_in_seconds: " +
		"a quorum needs both to distinguish servers, and to detect that a server has just started: " +
		"connect each client to a server itself, not to a proxy")
	errDuplicate = errors.New("lead to the same server, which has one vote: give each client an address of its own")
	errReplaced  = errors.New("a client of the quorum leads to another server than before: try again, " +
		"and give each client the address of one server, not of a load balancer")
)

// admit refuses a connection to a server that must not vote.
func (m *membership) admit(ctx context.Context, i int, conn *redis.Conn) error {
	info, err := conn.Info(ctx, "server").Result()
	if err != nil {
		return fmt.Errorf("INFO server, which a quorum needs to identify its servers: %w", err)
	}
	run, up, ok := identityOf(info)
	if !ok {
		return command.Answered(errNoIdentity)
	}
	if err := m.identify(i, run); err != nil {
		return command.Answered(err)
	}
	if err := m.admitUptime(i, up, time.Now()); err != nil {
		return command.Answered(err)
	}
	return nil
}

// admitUptime refuses a server that has run for less than the quarantine.
func (m *membership) admitUptime(i int, up time.Duration, now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	one := &m.members[i]
	one.inQuarantine = nil
	if left := m.quarantine - up; left > 0 {
		one.inQuarantine = fmt.Errorf("the server has run for %v only, and does not vote yet: wait until it has run for the %v of WithQuarantine",
			max(up, 0), m.quarantine)
		one.quarantinedUntil = now.Add(min(left, maxQuarantineCheck))
	}
	return one.inQuarantine
}

// quarantined returns why a server need not be contacted now, or nil.
func (m *membership) quarantined(i int, now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if one := &m.members[i]; one.inQuarantine != nil && now.Before(one.quarantinedUntil) {
		return one.inQuarantine
	}
	return nil
}

// identify records which process is behind a client. If it is another process than before,
// identify closes all connections of the client, this one included: the previous process may
// be behind another client now.
func (m *membership) identify(i int, run string) error {
	m.mu.Lock()
	one := &m.members[i]
	var old []net.Conn
	if one.run != "" && one.run != run {
		one.generation++
		for conn := range one.conns {
			conn.isReplaced.Store(true)
			old = append(old, conn.Conn)
		}
		clear(one.conns)
	}
	one.run = run
	m.findDuplicate()
	m.mu.Unlock()
	for _, conn := range old {
		_ = conn.Close()
	}
	if old != nil {
		return errReplaced
	}
	return nil
}

// findDuplicate sets m.same if a process is behind two clients. A process is behind a client
// while the client has a connection to it, or is not contacted because of the quarantine. The
// caller holds m.mu.
func (m *membership) findDuplicate() {
	m.same = nil
	now, seen := time.Now(), make(map[string]int, len(m.members))
	for i := range m.members {
		one := &m.members[i]
		if one.run == "" || (len(one.conns) == 0 && !now.Before(one.quarantinedUntil)) {
			continue
		}
		if first, twice := seen[one.run]; twice {
			m.same = fmt.Errorf("clients %d and %d of the quorum %w", first, i, errDuplicate)
			return
		}
		seen[one.run] = i
	}
}

// duplicate returns an error if two clients are connected to the same server.
func (m *membership) duplicate() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.same != nil { // it may have ended, because it depends on the time
		m.findDuplicate()
	}
	return m.same
}

// generations returns the generation of each member, by client.
func (m *membership) generations() []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	generations := make([]int, len(m.members))
	for i, one := range m.members {
		generations[i] = one.generation
	}
	return generations
}

// replaced reports whether the process behind a client was replaced after the given
// generations. The new process may have answered the same request behind another client.
func (m *membership) replaced(i int, generations []int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.members[i].generation != generations[i]
}

// known reports whether the server was identified, or has failed. A ballot does not wait for
// a server that has failed in order to identify it.
func (m *membership) known(i int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.members[i].run != "" || m.members[i].unreachable
}

// recordFailure records that a request to the server has failed.
func (m *membership) recordFailure(i int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.members[i].unreachable, m.members[i].latency = true, 0
}

// recordLatency records how long a reply of the server took.
func (m *membership) recordLatency(i int, latency time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.members[i].latency = latency
}

// latency returns how long the last reply of the server took. It is 0 if there was no reply
// since the last failure.
func (m *membership) latency(i int) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.members[i].latency
}

// identityOf parses the run_id and the uptime of a process from INFO server. Redis reports
// the uptime in whole seconds. The first second may have been shorter, so one second is
// subtracted.
func identityOf(info string) (run string, up time.Duration, ok bool) {
	fields := command.InfoFields(info)
	run = fields["run_id"]
	n, err := strconv.ParseInt(fields["uptime_in_seconds"], 10, 32)
	return run, time.Duration(n-1) * time.Second, run != "" && err == nil && n >= 0
}
