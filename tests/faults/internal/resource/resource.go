// Package resource is what the lock protects in a run: registers that clients read and
// write under a lease, and a ledger that is charged once for each payment. It runs in the
// process of the campaign. Client processes reach it on a socket of the host, so it does
// not fail with Redis.
//
// Each key has two registers. The fenced register refuses reads and writes with a fencing
// number below the highest one that it has seen. It also refuses reads, since a late write
// could come between a read and the write that is based on that read. The unfenced register
// refuses nothing: it shows what the lock guarantees alone.
//
// A register stores its version: the number of writes that it has accepted. A write names
// the version that it is based on, so two writes based on one version are a lost update.
package resource

import (
	"encoding/json"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
	"github.com/reqlock/reqlock/tests/internal/clock"
)

// usersPerPayment is how many users get the same payment, one after the other, so that
// their attempts compete.
const usersPerPayment = 4

// A Resource serves its registers and its ledger. It is safe for concurrent use.
type Resource struct {
	listener net.Listener
	serving  sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	conns    map[net.Conn]struct{}
	all      map[name]*register
	accesses []history.Access // in the order in which they were executed
	effects  []history.Effect // all charges, in order
	payments int              // how often a payment was requested
}

// A name identifies a register.
type name struct {
	key    string
	fenced bool
}

// A register is one value under the lock.
type register struct {
	version int64 // the number of accepted writes
	fence   int64 // the highest one that it has seen
}

// Serve starts a new resource on a free loopback port. The cleanup of tb closes it, and
// returns when all its goroutines have ended.
func Serve(tb testing.TB) *Resource {
	tb.Helper()
	listener, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("listen for the users of the resource: %v", err)
	}
	r := &Resource{listener: listener, all: map[name]*register{}, conns: map[net.Conn]struct{}{}}
	r.serving.Go(func() {
		if err := r.accept(); !errors.Is(err, net.ErrClosed) {
			tb.Errorf("wait for users of the resource: %v", err)
		}
	})
	tb.Cleanup(r.close)
	return r
}

// Addr returns the address for Dial.
func (r *Resource) Addr() string { return r.listener.Addr().String() }

// Fill adds all accesses to the registers, and all charges, to a history.
func (r *Resource) Fill(h *history.History) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h.Accesses, h.Effects = slices.Clone(r.accesses), slices.Clone(r.effects)
}

func (r *Resource) close() {
	_ = r.listener.Close()
	r.mu.Lock()
	r.closed = true
	for conn := range r.conns {
		_ = conn.Close()
	}
	r.mu.Unlock()
	r.serving.Wait()
}

// accept serves all users until the resource is closed.
func (r *Resource) accept() error {
	for {
		conn, err := r.listener.Accept()
		if err != nil {
			return err
		}
		if r.track(conn) {
			r.serving.Go(func() { r.serve(conn) })
		}
	}
}

// track records a connection, to be closed at the end. It returns false if the resource is
// closed already.
func (r *Resource) track(conn net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		_ = conn.Close()
		return false
	}
	r.conns[conn] = struct{}{}
	return true
}

// serve handles the requests of one connection, one after the other, until the connection
// ends.
func (r *Resource) serve(conn net.Conn) {
	defer func() {
		_ = conn.Close()
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.conns, conn)
	}()
	in, out := json.NewDecoder(conn), json.NewEncoder(conn)
	for {
		var request request
		if err := in.Decode(&request); err != nil {
			return // the user was killed or has ended
		}
		if err := out.Encode(r.handle(request)); err != nil {
			return
		}
	}
}

// A request is one JSON value: an access, an effect, or an empty value, which requests a
// payment.
type request struct {
	Access *history.Access `json:"access,omitempty"`
	Effect *history.Effect `json:"effect,omitempty"`
}

// A reply is the answer to a request.
type reply struct {
	Version int64 `json:"version,omitempty"`
	Refused bool  `json:"refused,omitempty"`
	Payment int   `json:"payment,omitempty"`
}

// handle executes and records a request.
func (r *Resource) handle(request request) (a reply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case request.Access != nil:
		done := r.access(*request.Access)
		a.Version, a.Refused = done.Version, done.Refused
	case request.Effect != nil:
		request.Effect.At = clock.Now()
		r.effects = append(r.effects, *request.Effect)
	default:
		a.Payment = r.payments / usersPerPayment
		r.payments++
	}
	return a
}

// access executes and records an access. The caller holds mu.
func (r *Resource) access(a history.Access) history.Access {
	id := name{a.Key, a.Fenced}
	one := r.all[id]
	if one == nil {
		one = &register{}
		r.all[id] = one
	}
	a.At = clock.Now()
	a.Refused = a.Fenced && a.Fence < one.fence
	if !a.Write {
		a.Version = one.version
	}
	if !a.Refused {
		one.fence = max(one.fence, a.Fence)
		if a.Write {
			one.version++
		}
	}
	r.accesses = append(r.accesses, a)
	return a
}
