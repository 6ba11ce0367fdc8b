package locktest

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"
)

// A wire is one connection to the server.
//
// Write does not wait for the server. Otherwise there could be a deadlock: the server replies
// before it has read all commands of a batch and waits until the client reads, while the
// client waits until the server reads.
type wire struct {
	net.Conn
	link  *link
	fault atomic.Pointer[net.OpError] // why the wire is dead; nil if it is not

	mu      sync.Mutex
	written []byte // not sent yet
	sending bool   // a goroutine runs send
}

// newDeadWire returns a wire that refuses all use.
func newDeadWire() *wire {
	conn, _ := net.Pipe()
	w := &wire{Conn: conn}
	w.fail(&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED})
	return w
}

// fail ends the wire. Each later use fails with the fault.
func (w *wire) fail(fault *net.OpError) {
	w.fault.Store(fault)
	_ = w.Conn.Close()
}

// Read reads from the server.
func (w *wire) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	return n, w.explain(err)
}

// Write queues b for the server. If sending fails later, Read returns the error.
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

// send sends the queued bytes until none are left.
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
		_, _ = w.Conn.Write(written) // if this fails, Read fails too
	}
}

// explain returns the fault of a dead wire instead of err, which follows from the fault.
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
