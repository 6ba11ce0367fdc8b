package locktest

import (
	"context"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/reqlock/reqlock/core"
)

// A Process is another process of the service, with its own connections to the Redis of the
// test. Its Locker has the options of New. All methods are safe for concurrent use.
type Process struct {
	// Locker is for the code that runs in the other process.
	*core.Locker

	link *link
}

// Process starts another process, which ends with the test. Give its Locker to a second
// instance of the code under test, to bring an attempt into a state that the first instance
// then finds: see the package comment on attempts.
func (l *Locks) Process() *Process {
	l.tb.Helper()
	p := l.start(l.opts...)
	l.tb.Cleanup(func() { p.end(0) })
	return &Process{Locker: p.locker, link: p.link}
}

// Kill cuts the process off from Redis for good, as the end of the process does. Its locks
// stay until their TTL ends. After that, the outcome of each of its attempts is unknown.
//
// Code that still runs in the process gets core.ErrUnavailable, and the context of its lease
// ends with core.ErrLost.
func (p *Process) Kill() { p.link.cut() }

// A process is a Locker with its own connections to Redis.
type process struct {
	locker *core.Locker
	link   *link
}

// newProcess returns a process on the server.
func newProcess(server *miniredis.Miniredis, opts []core.Option) (*process, error) {
	link := newLink(server)
	locker, err := core.New(link.client, append([]core.Option{core.WithLogger(nil)}, opts...)...)
	if err != nil {
		link.close()
		return nil, err
	}
	return &process{locker: locker, link: link}, nil
}

// end closes the Locker and then its link. Holders have the time of grace to release.
func (p *process) end(grace time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	_ = p.locker.Close(ctx) // its error says that a lease was still held
	p.link.close()
}
