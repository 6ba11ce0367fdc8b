package redisstore

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// faultOf takes a key and returns the fault, which must come within the bound, or
// soon after it on a busy machine.
func faultOf(t *testing.T, s *syncStore, within time.Duration) *store.Fault {
	t.Helper()
	r := request(me1)
	r.Bound = within
	begun := time.Now()
	_, err := s.Take(t.Context(), r)
	if took := time.Since(begun); took > within+patience {
		t.Errorf("took %v, the bound is %v", took, within)
	}
	return asFault(t, err)
}

// asFault returns the error as the fault that it must be.
func asFault(t *testing.T, err error) *store.Fault {
	t.Helper()
	var fault *store.Fault
	if !errors.As(err, &fault) {
		t.Fatalf("got %v, want a fault", err)
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		t.Errorf("the fault %v poses as the end of the caller's context", err)
	}
	return fault
}

//faults:row 19, 20
func TestWhatTheServersErrorsMean(t *testing.T) {
	configure := func(settings ...string) func(*testing.T, *redis.Client) {
		return func(t *testing.T, rdb *redis.Client) {
			t.Helper()
			for i := 0; i < len(settings); i += 2 {
				if err := rdb.ConfigSet(t.Context(), settings[i], settings[i+1]).Err(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	run := func(args ...any) func(*testing.T, *redis.Client) {
		return func(t *testing.T, rdb *redis.Client) {
			t.Helper()
			if err := rdb.Do(t.Context(), args...).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	tests := []struct {
		name    string
		spoil   func(*testing.T, *redis.Client)
		passing bool
	}{
		{"READONLY", run("replicaof", "127.0.0.1", "1"), true},
		{"NOREPLICAS", configure("min-replicas-to-write", "1"), true},
		{"MASTERDOWN", func(t *testing.T, rdb *redis.Client) {
			t.Helper()
			configure("replica-serve-stale-data", "no")(t, rdb)
			run("replicaof", "127.0.0.1", "1")(t, rdb)
		}, true},
		{"OOM", configure("maxmemory", "1"), false},
		{"NOPERM", run("acl", "setuser", "default", "-set"), false},
		{"WRONGTYPE", run("rpush", theLock, "x"), false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rdb := redistest.Start(t).Client(t)
			test.spoil(t, rdb)
			fault := faultOf(t, newStore(t, rdb), longBound)
			if fault.Passing != test.passing || fault.Unknown {
				t.Errorf("%+v: %v", fault, fault)
			}
		})
	}
}

// WAIT comes too late where a master has become a replica since the script before it.
func TestWAITAtAReplicaPasses(t *testing.T) {
	rdb := redistest.StartSentinel(t).Replicas()[0].Client(t)
	err := rdb.Do(t.Context(), "wait", 1, 1).Err()
	if err == nil || !newFault(err, true).Passing {
		t.Errorf("got %v", err)
	}
}

//faults:row 20: BUSY
func TestABusyServerPasses(t *testing.T) {
	server := redistest.Start(t, "--busy-reply-threshold", "10")
	rdb := server.Client(t, func(o *redis.Options) { o.ReadTimeout = 10 * time.Second })
	s := newStore(t, rdb)
	script := make(chan error, 1)
	go func() { script <- rdb.Eval(context.Background(), "while true do end", nil).Err() }()
	for {
		r := request(me1)
		if _, err := s.Enqueue(t.Context(), r); err != nil {
			var fault *store.Fault
			if !errors.As(err, &fault) || !fault.Passing || fault.Unknown {
				t.Errorf("got %v", err)
			}
			break
		}
	}
	rdb.ScriptKill(t.Context())
	if err := <-script; err == nil {
		t.Error("the script ended by itself")
	}
	if _, err := s.Enqueue(t.Context(), request(me1)); err != nil {
		t.Errorf("after it: %v", err)
	}
}

func TestAServerThatIsDown(t *testing.T) {
	server := redistest.Start(t)
	s := newStore(t, server.Client(t))
	server.Kill()
	if fault := faultOf(t, s, longBound); !fault.Passing || fault.Unknown {
		t.Errorf("%+v: %v", fault, fault)
	}
}

func TestAClientThatIsClosed(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	s := newStore(t, rdb)
	_ = rdb.Close()
	if fault := faultOf(t, s, longBound); fault.Passing || fault.Unknown || !errors.Is(fault, redis.ErrClosed) {
		t.Errorf("%+v: %v", fault, fault)
	}
}

func TestFaultsOfUnknownFate(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: errors.New("refused")}
	tests := []struct {
		name            string
		err             error
		c               course
		unknown, passes bool
	}{
		{"no connection", refused, course{sends: 2}, false, true},
		{"no connection, but an earlier send is open", refused, course{sends: 2, open: 1}, true, true},
		{"no connection, but an earlier send broke off", refused, course{sends: 2, blind: true}, true, true},
		{"broken off", io.EOF, course{sends: 2, blind: true}, true, true},
		{"refused by the server, but an earlier send broke off", serverError("READONLY x"), course{sends: 2, blind: true}, true, true},
		{"refused by the server", serverError("READONLY x"), course{sends: 1}, false, true},
		{"no reply", errNoReply, course{sends: 2, open: 2}, true, true},
		{"a context's error is sealed", context.DeadlineExceeded, course{sends: 2, blind: true}, true, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			fault := newFault(test.err, test.c.uncertain())
			if fault.Unknown != test.unknown || fault.Passing != test.passes || errors.Is(fault, context.DeadlineExceeded) {
				t.Errorf("%+v", fault)
			}
		})
	}
}
