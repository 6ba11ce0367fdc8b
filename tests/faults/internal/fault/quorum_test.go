package fault

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/faults/internal/network"
	"github.com/reqlock/reqlock/tests/faults/internal/validate"
)

// quorumCommandTimeout bounds a command to one server.
const quorumCommandTimeout = 100 * time.Millisecond

// quorumSigns counts what the clients of a quorum see on their connections.
type quorumSigns struct {
	mu   sync.Mutex
	seen map[string]int // how often each sign was seen
}

// The signs of a fault on connections.
const (
	isRefused = "a connection is refused"
	isEnded   = "a connection ends"
	isSilent  = "a reply does not come in time"
	isReset   = "a connection is reset"
)

func (v *quorumSigns) record(sign string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seen[sign]++
}

func (v *quorumSigns) has(sign string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.seen[sign] > 0
}

// A signConn is a connection that counts the signs of faults.
type signConn struct {
	net.Conn
	signs *quorumSigns

	mu    sync.Mutex
	asked time.Time // since when a reply is missing; zero if none is
}

func (e *signConn) Write(from []byte) (int, error) {
	e.mu.Lock()
	if e.asked.IsZero() {
		e.asked = time.Now()
	}
	e.mu.Unlock()
	return e.Conn.Write(from)
}

func (e *signConn) Read(into []byte) (int, error) {
	n, err := e.Conn.Read(into)
	if n > 0 {
		e.answered()
	}
	for _, class := range []string{"-OOM", "-READONLY"} {
		if bytes.Contains(into[:n], []byte(class)) {
			e.signs.record(class)
		}
	}
	var timeout net.Error
	switch {
	case err == nil:
	case errors.Is(err, net.ErrClosed), errors.As(err, &timeout) && timeout.Timeout(): // the client has closed it or given up
	case strings.Contains(err.Error(), "connection reset"):
		e.signs.record(isReset)
	default:
		e.signs.record(isEnded)
	}
	return n, err
}

func (e *signConn) Close() error {
	e.answered()
	return e.Conn.Close()
}

// answered ends the wait for a reply. The end of a connection is no sign of a missing
// reply: a half-open connection is closed when it is healed.
func (e *signConn) answered() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.asked.IsZero() && time.Since(e.asked) > quorumCommandTimeout {
		e.signs.record(isSilent)
	}
	e.asked = time.Time{}
}

// quorumEvidence returns the sign of each fault; "" if the injection checks itself, or if
// the fault has no sign on connections.
func quorumEvidence() map[string]string {
	return map[string]string{
		"quorum-servers-crash":               isEnded,
		"quorum-servers-stand-still":         isSilent,
		"quorum-servers-are-slow":            "",
		"quorum-servers-are-late":            isSilent,
		"quorum-servers-are-refused":         isRefused,
		"quorum-servers-are-cut":             isEnded,
		"quorum-servers-are-reset":           isReset,
		"quorum-servers-get-no-commands":     isSilent,
		"quorum-servers-send-no-replies":     isSilent,
		"quorum-servers-are-out-of-memory":   "-OOM",
		"quorum-servers-are-replicas":        "-READONLY",
		"quorum-servers-lose-scripts":        "", // the number of NOSCRIPT replies shows it
		"quorum-servers-pause":               isSilent,
		"quorum-servers-crash-and-keep-data": isEnded,
		"quorum-servers-crash-in-turn":       isEnded,
		"quorum-servers-storm":               "",
		"quorum-majority-crashes":            isEnded,
		"quorum-majority-stands-still":       isSilent,

		"quorum-majority-stands-still-beyond-fail-fast": isSilent,

		"quorum-majority-is-refused":       isRefused,
		"quorum-majority-gets-no-commands": isSilent,
		"quorum-majority-sends-no-replies": isSilent,
	}
}

// Each fault of some servers takes effect and is healed. No two clients hold a lock at a
// time.
func TestFaultsOfAQuorum(t *testing.T) {
	t.Parallel()
	known := quorumEvidence()
	few := []string{"quorum-servers-crash-in-turn", "quorum-servers-are-out-of-memory", "quorum-majority-crashes", "quorum-servers-send-no-replies"}
	for _, f := range slices.Concat(quorumFaults(), quorumFailFastFaults()) {
		sign, is := known[f.Name]
		if !is {
			t.Errorf("no evidence is known for %s", f.Name)
			continue
		}
		delete(known, f.Name)
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			if !slices.Contains(few, f.Name) {
				suite.Full(t, "runs each fault of a quorum")
			}
			awaitQuorumTurn(t)
			injectOnQuorum(t, f, sign)
		})
	}
	for name := range known {
		t.Errorf("there is no fault %s", name)
	}
}

// injectOnQuorum injects a fault into some servers of a quorum.
func injectOnQuorum(t *testing.T, f Fault, sign string) {
	t.Helper()
	const ttl = 500 * time.Millisecond
	v := &quorumSigns{seen: map[string]int{}}
	s := &System{TB: t, TTL: ttl, Keys: []string{"reqlock:a", "reqlock:b"}}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	s.Random = rand.New(rand.NewPCG(seed, 0))
	var addrs []string
	for range 5 {
		server := redistest.Start(t, f.Args...)
		s.Quorum = append(s.Quorum, Voter{server, server.Client(t)})
		addrs = append(addrs, server.Addr())
	}
	s.Admin = s.Quorum[0].Admin
	s.Network = network.Start(t, addrs...)
	before := make([]map[string]string, len(s.Quorum))
	for i, voter := range s.Quorum {
		before[i] = state(t, voter.Admin)
	}
	workload := startQuorum(t, s, v, addrs)
	s.Workload = workload
	open, noGrants := 0, 0
	most := strings.HasPrefix(f.Name, "quorum-majority")
	s.Disrupt = func(name string, lost Loss) func() {
		open++
		if lost != nil {
			t.Errorf("%s loses data", name)
		}
		if strings.HasPrefix(name, validate.NoGrants) {
			noGrants++
			workload.startCounting()
			return func() {
				open--
				if n := workload.granted(); n > 0 {
					t.Errorf("%s, and %d were", name, n)
				}
			}
		}
		return func() { open-- }
	}

	workload.awaitAll()
	forgotten := s.errorReplies("NOSCRIPT")
	f.Inject(s)

	if f.Name == "quorum-servers-lose-scripts" && s.errorReplies("NOSCRIPT") == forgotten {
		t.Error("it has not taken place: all scripts are known")
	}
	if sign != "" && !v.has(sign) {
		t.Errorf("it has not taken place: not seen: %q, but %v", sign, v.seen)
	}
	if open != 0 || (noGrants > 0) != most {
		t.Errorf("%d disruptions have not ended; %d times no lock could be granted", open, noGrants)
	}
	for i, voter := range s.Quorum {
		for name, value := range state(t, voter.Admin) {
			if before[i][name] != value {
				t.Errorf("%s of %s is %q, and was %q", name, voter.Addr(), value, before[i][name])
			}
		}
	}
	workload.awaitAll()
	if workload.overlaps > 0 {
		t.Errorf("%d overlaps", workload.overlaps)
	}
}

// startQuorum starts processes on a quorum, each with a path of its own.
func startQuorum(t *testing.T, s *System, v *quorumSigns, addrs []string) *inProcessWorkload {
	t.Helper()
	process := 0
	return newWorkload(t, []string{"a", "b"}, func(p *inProcess) {
		process++
		routes := s.Network.Path(process).Routes
		dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := p.dial(ctx, network, routes[addr])
			if err != nil {
				v.record(isRefused)
				return nil, err
			}
			return &signConn{Conn: conn, signs: v}, nil
		}
		for _, addr := range addrs {
			p.clients = append(p.clients, redis.NewClient(&redis.Options{Addr: addr, Dialer: dial, ContextTimeoutEnabled: true}))
		}
		p.locks = core.Must(core.NewQuorum(p.clients, core.WithTTL(s.TTL), core.WithWait(time.Second),
			core.WithCommandTimeout(quorumCommandTimeout), core.WithQuarantine(Quarantine(s.TTL))))
	})
}
