package pipeline

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/topology"
)

// diagnosisPause is the shortest time between two diagnoses of a server.
const diagnosisPause = time.Second

// diagnose finds out whether the server of a key can be connected to, because a batch has no
// reply so far. By default a client of go-redis tries to connect for 400 ms before it reports
// that a connection was refused, which is too late for the error of a call. The connection is
// closed again. The call returns at once.
func (h *health) diagnose(key []byte) {
	h.mu.Lock()
	now := time.Now()
	due := now.Sub(h.diagnosed) >= diagnosisPause
	if due {
		h.diagnosed = now
	}
	h.mu.Unlock()
	if !due {
		return
	}
	name := string(key)
	h.pipeline.work.Add()
	go func() {
		defer h.pipeline.work.Done()
		if err := h.pipeline.connect(name); err != nil && command.IsUnreached(err) {
			h.mu.Lock()
			h.dialErr = err
			h.mu.Unlock()
		}
	}()
}

// connect connects to the server of a key once, and returns the error.
func (p *Pipeline) connect(name string) error {
	var o *redis.Options
	if one, ok := p.rdb.(topology.Server); ok {
		o = one.Options()
	} else if p.cluster != nil {
		if master := p.masterOf(name); master != nil {
			o = master.Options()
		}
	}
	if o == nil || o.Dialer == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeBound)
	defer cancel()
	conn, err := o.Dialer(ctx, o.Network, o.Addr)
	if err != nil {
		return err
	}
	return conn.Close()
}
