package resource

import (
	"encoding/json"
	"errors"
	"net"
	"sync"
	"testing"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// A Resource serves its registers and its ledger. It is safe for concurrent use.
type Resource struct {
	registers registers
	ledger    ledger
	listener  net.Listener

	mu      sync.Mutex
	closed  bool
	conns   map[net.Conn]struct{}
	serving sync.WaitGroup
}

// Serve starts a new resource on a free loopback port. The cleanup of tb closes it, and
// returns when all its goroutines have ended.
func Serve(tb testing.TB) *Resource {
	tb.Helper()
	listener, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("listen for the users of the resource: %v", err)
	}
	r := &Resource{
		registers: registers{all: map[name]*register{}},
		listener:  listener,
		conns:     map[net.Conn]struct{}{},
	}
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

// Accesses returns all accesses to the registers so far, in order.
func (r *Resource) Accesses() []history.Access { return r.registers.log() }

// Effects returns all charges so far, in order.
func (r *Resource) Effects() []history.Effect { return r.ledger.charged() }

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

// handle executes a request.
func (r *Resource) handle(request request) (a reply) {
	switch {
	case request.Access != nil:
		done := r.registers.access(*request.Access)
		a.Version, a.Refused = done.Version, done.Refused
	case request.Effect != nil:
		r.ledger.charge(*request.Effect)
	default:
		a.Payment = r.ledger.payment()
	}
	return a
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
