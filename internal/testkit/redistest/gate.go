package redistest

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// writeSlice bounds how long one write keeps the gate from being shut, when
// the receiver does not read.
const writeSlice = 20 * time.Millisecond

// gate is what every byte passes on its way through the proxy. Shut, it is a
// network partition. It is safe for concurrent use. The zero gate is open.
type gate struct {
	mu     sync.RWMutex  // held for reading while a write is under way
	opened chan struct{} // closed when a shut gate opens; nil while open
}

// shut returns when no write is under way any more: from then on nothing
// passes.
func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened == nil {
		g.opened = make(chan struct{})
	}
}

// open lets everybody who waits pass.
func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened != nil {
		close(g.opened)
		g.opened = nil
	}
}

// enter waits until the gate is open and keeps it so until leave. It fails
// when ctx ends. An ended ctx wins over an open gate: that is how the bytes of
// connections closed by HealDropped are lost.
func (g *gate) enter(ctx context.Context) error {
	for {
		g.mu.RLock()
		opened := g.opened
		if err := ctx.Err(); err != nil {
			g.mu.RUnlock()
			return err
		}
		if opened == nil {
			return nil
		}
		g.mu.RUnlock()
		select {
		case <-opened:
		case <-ctx.Done():
		}
	}
}

// leave ends what enter began.
func (g *gate) leave() {
	g.mu.RUnlock()
}

// pass calls do while the gate is open. It must be short: the gate can not be
// shut meanwhile.
func (g *gate) pass(ctx context.Context, do func()) error {
	if err := g.enter(ctx); err != nil {
		return err
	}
	defer g.leave()
	do()
	return nil
}

// wait returns when the gate was open for a moment.
func (g *gate) wait(ctx context.Context) error {
	return g.pass(ctx, func() {})
}

// write writes all of data to conn while the gate is open. It writes in slices
// of time: a receiver that does not read must not keep the gate from being
// shut.
func (g *gate) write(ctx context.Context, conn net.Conn, data []byte) error {
	for len(data) > 0 {
		if err := g.enter(ctx); err != nil {
			return err
		}
		n, err := 0, conn.SetWriteDeadline(time.Now().Add(writeSlice))
		if err == nil {
			n, err = conn.Write(data)
		}
		g.leave()
		data = data[n:]
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
	}
	return nil
}
