package redistest

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// writeSlice bounds how long one write delays the start of a partition if the receiver does
// not read.
const writeSlice = 20 * time.Millisecond

// partition is a network partition of the proxy. Each write of the proxy waits while the
// partition is active. It is safe for concurrent use. The zero partition is not active.
type partition struct {
	mu    sync.RWMutex  // read-locked during a write
	ended chan struct{} // closed when the partition ends; nil if it is not active
}

// begin begins a partition. It returns when no write is in progress.
func (p *partition) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended == nil {
		p.ended = make(chan struct{})
	}
}

func (p *partition) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended != nil {
		close(p.ended)
		p.ended = nil
	}
}

// enter waits until the partition is not active, and prevents its start until leave. It fails
// if ctx has ended, even if the partition is not active: so the data of connections that
// HealDropped closes is lost.
func (p *partition) enter(ctx context.Context) error {
	for {
		p.mu.RLock()
		ended := p.ended
		if err := ctx.Err(); err != nil {
			p.mu.RUnlock()
			return err
		}
		if ended == nil {
			return nil
		}
		p.mu.RUnlock()
		select {
		case <-ended:
		case <-ctx.Done():
		}
	}
}

func (p *partition) leave() {
	p.mu.RUnlock()
}

// run calls do while the partition is not active. The function do must be short, because no
// partition can begin meanwhile.
func (p *partition) run(ctx context.Context, do func()) error {
	if err := p.enter(ctx); err != nil {
		return err
	}
	defer p.leave()
	do()
	return nil
}

// wait waits until the partition is not active.
func (p *partition) wait(ctx context.Context) error {
	return p.run(ctx, func() {})
}

// write writes all of data to conn while the partition is not active. Each write has a short
// deadline, because a receiver that does not read must not prevent a partition.
func (p *partition) write(ctx context.Context, conn net.Conn, data []byte) error {
	for len(data) > 0 {
		if err := p.enter(ctx); err != nil {
			return err
		}
		n, err := 0, conn.SetWriteDeadline(time.Now().Add(writeSlice))
		if err == nil {
			n, err = conn.Write(data)
		}
		p.leave()
		data = data[n:]
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
	}
	return nil
}
