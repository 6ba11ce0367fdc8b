package quorumstore

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

func TestAServerTellsWhoItIs(t *testing.T) {
	for name, c := range map[string]struct {
		info string
		run  string
		up   time.Duration
		ok   bool
	}{
		"as redis does":   {"# Server\r\nredis_version:7.0.15\r\nrun_id:abc\r\nuptime_in_seconds:12\r\nuptime_in_days:0\r\n", "abc", 11 * time.Second, true},
		"just started":    {"run_id:abc\r\nuptime_in_seconds:0\r\n", "abc", -time.Second, true},
		"without a name":  {"uptime_in_seconds:12\r\n", "", 11 * time.Second, false},
		"without a time":  {"run_id:abc\r\n", "abc", -time.Second, false},
		"with a bad time": {"run_id:abc\r\nuptime_in_seconds:1e9\r\n", "abc", -time.Second, false},
		"with nothing":    {"", "", -time.Second, false},
	} {
		run, up, ok := identityOf(c.info)
		if run != c.run || ok != c.ok || (ok && up != c.up) {
			t.Errorf("%s: got %q, %v, %v", name, run, up, ok)
		}
	}
}

// A wire is a connection of a client, of which a test knows whether it is open.
type wire struct {
	net.Conn
	closed bool
}

func (w *wire) Close() error {
	w.closed = true
	return nil
}

// connected makes a connection of a client that leads to a process.
func (m *muster) connected(i int, run string) (w *wire, watched net.Conn, err error) {
	w = &wire{}
	watched, _ = m.watch(i, func(context.Context, string, string) (net.Conn, error) { return w, nil })(context.Background(), "", "")
	return w, watched, m.meet(i, run)
}

// joined makes a muster of these processes, each behind a client of its own.
func joined(t *testing.T, runs ...string) (m *muster, wires []*wire, conns []net.Conn) {
	t.Helper()
	m = newMuster(len(runs), time.Second)
	for i, run := range runs {
		w, conn, err := m.connected(i, run)
		if err != nil {
			t.Fatal(err)
		}
		wires, conns = append(wires, w), append(conns, conn)
	}
	return m, wires, conns
}

func TestOneServerIsNotTwo(t *testing.T) {
	m, _, conns := joined(t, "a", "b", "a")
	if err := m.double(); !errors.Is(err, errDouble) || !strings.Contains(err.Error(), "0 and 2") {
		t.Errorf("got %v", err)
	}
	if err := conns[0].Close(); err != nil || m.double() != nil { // it is behind the other client alone
		t.Errorf("got %v, %v", err, m.double())
	}
}

// unlike is a connection that cannot be compared.
type unlike struct {
	*wire
	_ []string
}

// The connections of a user's dialer are his own affair.
func TestAConnectionNeedNotBeComparable(t *testing.T) {
	m := newMuster(1, time.Second)
	one, other := &wire{}, &wire{}
	for _, w := range []*wire{one, other} {
		dial := m.watch(0, func(context.Context, string, string) (net.Conn, error) { return unlike{wire: w}, nil })
		conn, err := dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		if w == other {
			err = conn.Close()
		}
		if err != nil || len(m.places[0].conns) != 1 {
			t.Errorf("got %v with %d connections", err, len(m.places[0].conns))
		}
	}
	_, _ = m.meet(0, "x"), m.meet(0, "y")
	if !one.closed || !other.closed {
		t.Error("one is open")
	}
}

// All connections of a client lead to one process: those to the one before end, and
// what is asked meanwhile is not believed.
func TestAClientLeadsToOneProcess(t *testing.T) {
	m, wires, _ := joined(t, "x", "y", "z")
	before := m.moves()
	late, _, err := m.connected(0, "w")
	if !errors.Is(err, errMoved) || !wires[0].closed || !late.closed || wires[1].closed {
		t.Errorf("got %v; closed: %v, %v, %v", err, wires[0].closed, late.closed, wires[1].closed)
	}
	if !m.moved(0, before) || m.moved(1, before) {
		t.Error("which of them has moved?")
	}
	if _, _, err := m.connected(0, "w"); err != nil {
		t.Error(err)
	}
	if _, _, err := m.connected(1, "x"); !errors.Is(err, errMoved) { // nobody else leads there any more
		t.Error(err)
	}
	if err := m.double(); err != nil {
		t.Error(err)
	}
}

// As long as a connection leads to a process, no other client may.
func TestAProcessThatIsStillConnectedBehindOneClientIsNotMetBehindAnother(t *testing.T) {
	m, _, conns := joined(t, "x", "y", "z")
	_, _, _ = m.connected(1, "x") // that closes the connections to y
	if _, _, err := m.connected(1, "x"); err != nil || !errors.Is(m.double(), errDouble) {
		t.Errorf("got %v, %v", err, m.double())
	}
	_ = conns[0].Close()
	if err := m.double(); err != nil {
		t.Error(err)
	}
}

// A process that was behind two clients is not for ever: not behind one where it was
// young, and whose address is dead since.
func TestAProcessIsNoLongerBehindAClientThatItHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMuster(3, longestYouth)
		_, conn, _ := m.connected(0, "x")
		if err := m.grow(0, 0, time.Now()); err == nil {
			t.Fatal("it may vote")
		}
		_ = conn.Close()
		time.Sleep(longestYouth - 1)
		_, _, _ = m.connected(1, "x")
		if err := m.double(); !errors.Is(err, errDouble) {
			t.Fatalf("got %v", err)
		}
		time.Sleep(time.Nanosecond)
		if err := m.double(); err != nil {
			t.Error(err)
		}
	})
}

// A server that is known to be young is not looked at for a while.
func TestAYoungServerIsLeftAlone(t *testing.T) {
	m := newMuster(1, time.Minute)
	now := time.Now()
	if err := m.grow(0, 59500*time.Millisecond, now); err == nil || m.waits(0, now) == nil {
		t.Errorf("got %v, %v", err, m.waits(0, now))
	}
	if err := m.waits(0, now.Add(500*time.Millisecond)); err != nil {
		t.Error(err)
	}
	if err := m.grow(0, 0, now); err == nil || m.waits(0, now.Add(longestYouth)) != nil {
		t.Errorf("got %v, %v", err, m.waits(0, now.Add(longestYouth)))
	}
	if err := errors.Join(m.grow(0, time.Minute, now), m.waits(0, now)); err != nil {
		t.Error(err)
	}
}

// A server gives no vote until it has run for the quarantine, and says why.
func TestAServerThatHasJustStartedDoesNotVote(t *testing.T) {
	server := redistest.Start(t)
	patient := newMuster(1, time.Hour)
	refused, err := patient.connect(0, server.Client(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = refused.Close() })
	if err := refused.Ping(t.Context()).Err(); err == nil || !strings.Contains(err.Error(), "WithQuarantine") {
		t.Errorf("got %v", err)
	}
	if !patient.met(0) {
		t.Error("it was not met")
	}
	brief := newMuster(1, time.Second)
	admitted, err := brief.connect(0, server.Client(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admitted.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for admitted.Ping(ctx).Err() != nil {
		if ctx.Err() != nil {
			t.Fatal("it never votes")
		}
	}
	said, err := server.Client(t).Info(ctx, "server").Result()
	if err != nil {
		t.Fatal(err)
	}
	if _, up, _ := identityOf(said); up < time.Second {
		t.Errorf("it votes after %v", up)
	}
}

// A client of a quorum has the options that the user's has, also those that mean
// "none", and its own hook is called first.
func TestAClientKeepsItsOptions(t *testing.T) {
	called := 0
	for name, given := range map[string]redis.Options{
		"defaults": {},
		"none":     {ReadTimeout: -1, WriteTimeout: -2, MaxRetries: -1, MinRetryBackoff: -1, MaxRetryBackoff: -1},
		"others": {
			ReadTimeout: time.Minute, WriteTimeout: time.Hour, MaxRetries: 7, MinRetryBackoff: time.Second, MaxRetryBackoff: time.Minute,
			Username: "u", Password: "p", DB: 3, ClientName: "n", ContextTimeoutEnabled: true, PoolSize: 5, MinIdleConns: 2,
			DialerRetries: 1, // of which none outlives the test
			OnConnect:     func(context.Context, *redis.Conn) error { called++; return errPasses },
		},
	} {
		given.Addr = "127.0.0.1:1"
		users := redis.NewClient(&given)
		ours, err := newMuster(1, time.Second).connect(0, users)
		if err != nil {
			t.Fatal(err)
		}
		want, got := users.Options(), ours.Options()
		type part struct {
			read, write, least, most time.Duration
			retries, db, pool        int
			user, password, name     string
			deadlines                bool
		}
		parts := func(o *redis.Options) part {
			return part{
				o.ReadTimeout, o.WriteTimeout, o.MinRetryBackoff, o.MaxRetryBackoff, o.MaxRetries, o.DB, o.PoolSize,
				o.Username, o.Password, o.ClientName, o.ContextTimeoutEnabled,
			}
		}
		if parts(want) != parts(got) {
			t.Errorf("%s: got %+v, want %+v", name, parts(got), parts(want))
		}
		if want.OnConnect != nil && (!errors.Is(got.OnConnect(t.Context(), nil), errPasses) || called != 1) {
			t.Errorf("%s: its hook was called %d times", name, called)
		}
		if err := errors.Join(users.Close(), ours.Close()); err != nil {
			t.Error(err)
		}
	}
}
