package quorumstore

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// go-redis checks connections that it can look into before it uses them again.
func TestTrackedConnectionShowsItsSocket(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	piped := func(context.Context, string, string) (net.Conn, error) {
		conn, other := net.Pipe()
		return conn, other.Close()
	}
	s, _ := newStore(1)
	for name, test := range map[string]struct {
		dial dialer
		want bool
	}{"tcp": {new(net.Dialer).DialContext, true}, "pipe": {piped, false}} {
		conn, err := s.membership.track(0, test.dial)(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, shows := conn.(syscall.Conn); shows != test.want {
			t.Errorf("%s: shows its socket: %v", name, shows)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestIdentityOfServer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		info string
		run  string
		up   time.Duration
		ok   bool
	}{
		"reply of redis":   {"# Server\r\nredis_version:7.0.15\r\nrun_id:abc\r\nuptime_in_seconds:12\r\nuptime_in_days:0\r\n", "abc", 11 * time.Second, true},
		"just started":     {"run_id:abc\r\nuptime_in_seconds:0\r\n", "abc", -time.Second, true},
		"without run_id":   {"uptime_in_seconds:12\r\n", "", 11 * time.Second, false},
		"without uptime":   {"run_id:abc\r\n", "abc", -time.Second, false},
		"malformed uptime": {"run_id:abc\r\nuptime_in_seconds:1e9\r\n", "abc", -time.Second, false},
		"empty":            {"", "", -time.Second, false},
	} {
		run, up, ok := identityOf(c.info)
		if run != c.run || ok != c.ok || (ok && up != c.up) {
			t.Errorf("%s: got %q, %v, %v", name, run, up, ok)
		}
	}
}

// A fakeConn is a connection of a client. It records whether it was closed.
type fakeConn struct {
	net.Conn
	closed bool
}

func (w *fakeConn) Close() error {
	w.closed = true
	return nil
}

// connected makes a connection of a client to a process.
func (m *membership) connected(i int, run string) (w *fakeConn, tracked net.Conn, err error) {
	w = &fakeConn{}
	tracked, _ = m.track(i, func(context.Context, string, string) (net.Conn, error) { return w, nil })(context.Background(), "", "")
	return w, tracked, m.identify(i, run)
}

// joined returns a membership of these processes. Each process is behind its own client.
func joined(t *testing.T, runs ...string) (m *membership, fakes []*fakeConn, conns []net.Conn) {
	t.Helper()
	m = newMembership(len(runs), time.Second)
	for i, run := range runs {
		w, conn, err := m.connected(i, run)
		if err != nil {
			t.Fatal(err)
		}
		fakes, conns = append(fakes, w), append(conns, conn)
	}
	return m, fakes, conns
}

func TestTwoClientsOfOneServerAreDetected(t *testing.T) {
	t.Parallel()
	m, _, conns := joined(t, "a", "b", "a")
	if err := m.duplicate(); !errors.Is(err, errDuplicate) || !strings.Contains(err.Error(), "0 and 2") {
		t.Errorf("got %v", err)
	}
	if err := conns[0].Close(); err != nil || m.duplicate() != nil { // only the other client leads to it now
		t.Errorf("got %v, %v", err, m.duplicate())
	}
}

// An uncomparable is a connection that cannot be compared.
type uncomparable struct {
	*fakeConn
	_ []string
}

// The dialer of a user may return connections of any type.
func TestConnectionsNeedNotBeComparable(t *testing.T) {
	t.Parallel()
	m := newMembership(1, time.Second)
	one, other := &fakeConn{}, &fakeConn{}
	for _, w := range []*fakeConn{one, other} {
		dial := m.track(0, func(context.Context, string, string) (net.Conn, error) { return uncomparable{fakeConn: w}, nil })
		conn, err := dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		if w == other {
			err = conn.Close()
		}
		if err != nil || len(m.members[0].conns) != 1 {
			t.Errorf("got %v with %d connections", err, len(m.members[0].conns))
		}
	}
	_, _ = m.identify(0, "x"), m.identify(0, "y")
	if !one.closed || !other.closed {
		t.Error("a connection is open")
	}
}

// All connections of a client lead to one process. If the process is replaced, the old
// connections are closed, and the replies to earlier requests do not count.
func TestClientLeadsToOneProcess(t *testing.T) {
	t.Parallel()
	m, fakes, _ := joined(t, "x", "y", "z")
	before := m.generations()
	late, _, err := m.connected(0, "w")
	if !errors.Is(err, errReplaced) || !fakes[0].closed || !late.closed || fakes[1].closed {
		t.Errorf("got %v; closed: %v, %v, %v", err, fakes[0].closed, late.closed, fakes[1].closed)
	}
	if !m.replaced(0, before) || m.replaced(1, before) {
		t.Error("want only client 0 replaced")
	}
	if _, _, err := m.connected(0, "w"); err != nil {
		t.Error(err)
	}
	if _, _, err := m.connected(1, "x"); !errors.Is(err, errReplaced) { // no other client leads to x any more
		t.Error(err)
	}
	_, _ = m.identify(2, "v"), m.identify(2, "x") // x was behind client 1, which has no connection any more
	if err := m.duplicate(); err != nil {
		t.Error(err)
	}
}

// A process is a duplicate while two clients have connections to it.
func TestProcessIsDuplicateWhileTwoClientsAreConnected(t *testing.T) {
	t.Parallel()
	m, _, conns := joined(t, "x", "y", "z")
	_, _, _ = m.connected(1, "x") // this closes the connections to y
	if _, _, err := m.connected(1, "x"); err != nil || !errors.Is(m.duplicate(), errDuplicate) {
		t.Errorf("got %v, %v", err, m.duplicate())
	}
	_ = conns[0].Close()
	if err := m.duplicate(); err != nil {
		t.Error(err)
	}
}

// A process in quarantine counts as behind a client without connections, but not after
// maxQuarantineCheck.
func TestProcessIsNoDuplicateAfterItMoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMembership(3, maxQuarantineCheck)
		_, conn, _ := m.connected(0, "x")
		if err := m.admitUptime(0, 0, time.Now()); err == nil {
			t.Fatal("a server in quarantine may vote")
		}
		_ = conn.Close()
		time.Sleep(maxQuarantineCheck - 1)
		_, _, _ = m.connected(1, "x")
		if err := m.duplicate(); !errors.Is(err, errDuplicate) {
			t.Fatalf("got %v", err)
		}
		time.Sleep(time.Nanosecond)
		if err := m.duplicate(); err != nil {
			t.Error(err)
		}
	})
}

// A server in quarantine is contacted at most once in maxQuarantineCheck.
func TestServerInQuarantineIsNotContacted(t *testing.T) {
	t.Parallel()
	m := newMembership(1, time.Minute)
	now := time.Now()
	if err := m.admitUptime(0, 59500*time.Millisecond, now); err == nil || m.quarantined(0, now) == nil {
		t.Errorf("got %v, %v", err, m.quarantined(0, now))
	}
	if err := m.quarantined(0, now.Add(500*time.Millisecond)); err != nil {
		t.Error(err)
	}
	if err := m.admitUptime(0, 0, now); err == nil || m.quarantined(0, now.Add(maxQuarantineCheck)) != nil {
		t.Errorf("got %v, %v", err, m.quarantined(0, now.Add(maxQuarantineCheck)))
	}
	if err := errors.Join(m.admitUptime(0, time.Minute, now), m.quarantined(0, now)); err != nil {
		t.Error(err)
	}
}

// A server does not vote until it has run for the quarantine. The error names the option.
func TestServerThatHasJustStartedDoesNotVote(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	longQuarantine := newMembership(1, time.Hour)
	refused, err := longQuarantine.connect(0, server.Client(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = refused.Close() })
	if err := refused.Ping(t.Context()).Err(); err == nil || !strings.Contains(err.Error(), "WithQuarantine") || command.IsUnserved(err) {
		t.Errorf("got %v", err)
	}
	if !longQuarantine.known(0) {
		t.Error("the server was not identified")
	}
	shortQuarantine := newMembership(1, time.Second)
	admitted, err := shortQuarantine.connect(0, server.Client(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admitted.Close() })
	suite.Eventually(t, "the server votes", func() bool { return admitted.Ping(t.Context()).Err() == nil })
	info, err := server.Client(t).Info(t.Context(), "server").Result()
	if err != nil {
		t.Fatal(err)
	}
	if _, up, _ := identityOf(info); up < time.Second {
		t.Errorf("the server votes after %v", up)
	}
	shortQuarantine.mu.Lock()
	defer shortQuarantine.mu.Unlock()
	if n := len(shortQuarantine.members[0].conns); n == 0 {
		t.Error("the connections of the client are not recorded")
	}
}

// A client of a quorum has the options of the user's client, also the options that mean "none".
// The user's hook is called first.
func TestClientKeepsItsOptions(t *testing.T) {
	t.Parallel()
	called := 0
	for name, given := range map[string]redis.Options{
		"defaults": {},
		"a cache":  {Protocol: 3, ClientSideCacheConfig: &redis.ClientSideCacheConfig{}},
		"none":     {ReadTimeout: -1, WriteTimeout: -2, MaxRetries: -1, MinRetryBackoff: -1, MaxRetryBackoff: -1},
		"others": {
			ReadTimeout: time.Minute, WriteTimeout: time.Hour, MaxRetries: 7, MinRetryBackoff: time.Second, MaxRetryBackoff: time.Minute,
			Username: "u", Password: "p", DB: 3, ClientName: "n", ContextTimeoutEnabled: true, PoolSize: 5, MinIdleConns: 2,
			DialerRetries: 1, // so that no dial continues after the test
			OnConnect:     func(context.Context, *redis.Conn) error { called++; return errTemporary },
		},
	} {
		given.Addr = "127.0.0.1:1"
		users := redis.NewClient(&given)
		ours, err := newMembership(1, time.Second).connect(0, users)
		if err != nil {
			t.Fatal(err)
		}
		want, got := users.Options(), ours.Options()
		parts := func(o *redis.Options) []any {
			return []any{
				o.ReadTimeout, o.WriteTimeout, o.MinRetryBackoff, o.MaxRetryBackoff, o.MaxRetries, o.DB, o.PoolSize,
				o.Username, o.Password, o.ClientName, o.ContextTimeoutEnabled,
			}
		}
		if got.PushNotificationProcessor == want.PushNotificationProcessor || got.ClientSideCache != nil || got.ClientSideCacheConfig != nil {
			t.Errorf("%s: the client shares a processor, or has a cache", name)
		}
		if got.MinIdleConns != 0 {
			t.Errorf("%s: the client dials %d connections that no command needs", name, got.MinIdleConns)
		}
		if !slices.Equal(parts(want), parts(got)) {
			t.Errorf("%s: got %+v, want %+v", name, parts(got), parts(want))
		}
		if want.OnConnect != nil && (!errors.Is(got.OnConnect(t.Context(), nil), errTemporary) || called != 1) {
			t.Errorf("%s: the user's hook was called %d times", name, called)
		}
		if err := errors.Join(users.Close(), ours.Close()); err != nil {
			t.Error(err)
		}
	}
}
