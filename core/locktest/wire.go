package locktest

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"
)

// A wire is one connection to the server.
//
// What is written to it does not wait for the server: one that answers before it
// has read all commands of a batch would wait for the client to read, and the
// client, which writes, for the server.
type wire struct {
	net.Conn
	link  *link
	fault atomic.Pointer[net.OpError] // why it is dead

	mu      sync.Mutex
	written []byte // and not sent yet
	sending bool   // a goroutine does, until nothing is left or the wire has ended
}

// newDeadWire returns a wire that leads nowhere.
func newDeadWire() *wire {
	conn, _ := net.Pipe()
	w := &wire{Conn: conn}
	w.fail(&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED})
	return w
}

// fail ends the wire; all use of it fails with the fault from now on.
func (w *wire) fail(fault *net.OpError) {
	w.fault.Store(fault)
	_ = w.Conn.Close()
}

// Read reads from the server.
func (w *wire) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	return n, w.explain(err)
}

// Write writes to the server. A write that fails later is seen by who reads.
func (w *wire) Write(b []byte) (int, error) {
	if fault := w.fault.Load(); fault != nil {
		return 0, fault
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written = append(w.written, b...)
	if !w.sending {
		w.sending = true
		go w.send()
	}
	return len(b), nil
}

// send sends what is written.
func (w *wire) send() {
	for {
		w.mu.Lock()
		written := w.written
		w.written = nil
		w.sending = len(written) > 0
		w.mu.Unlock()
		if len(written) == 0 {
			return
		}
		_, _ = w.Conn.Write(written) // one that fails will fail again, or be the last
	}
}

// explain returns the wire's fault in place of an error that follows from it.
func (w *wire) explain(err error) error {
	if fault := w.fault.Load(); err != nil && fault != nil {
		return fault
	}
	return err
}

// Close ends the wire.
func (w *wire) Close() error {
	if w.link != nil {
		w.link.mu.Lock()
		delete(w.link.wires, w)
		w.link.mu.Unlock()
	}
	return w.Conn.Close()
}
