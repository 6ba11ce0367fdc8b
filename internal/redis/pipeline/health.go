package pipeline

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reqlock/reqlock/internal/backoff"
	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/topology"
)

// A health says since when a server has not served any command, and why. The lanes to the
// server record the result of each batch in it.
//
// A reply ends the unserved time, also one that arrives after its call has failed. An error
// reply is a reply, except for the errors of a server that serves no client at present: see
// command.IsUnserved.
//
// While commands fail, a health sends probes, one at a time. So the unserved time has no
// gap in which no command was sent, and it ends soon after the server is back, even if no
// caller sends anything.
type health struct {
	pipeline *Pipeline
	lane     *lane           // on which to send probes
	server   topology.Server // the client of the server; nil if it is not known
	outage   outage

	lastServed atomic.Int64 // when a reply last arrived: nanoseconds since Pipeline.begun
	isUnserved atomic.Bool  // since is set

	mu      sync.Mutex
	since   time.Time // zero if the last command was served
	why     error     // the last failure
	dialErr error     // the last failure to connect
	key     []byte    // the Redis key of the first command that failed
	probing bool      // a probe is in flight, or its timer is set
	probes  int       // since the last reply
	timer   *time.Timer
}

// noteHealth records the result of a batch: now is when its replies had arrived.
func (l *lane) noteHealth(b *batch, now time.Time) {
	for _, s := range b.sends {
		if s.reply.isServed() {
			l.health.served(now)
			return
		}
	}
	if len(b.sends) > 0 {
		last := b.sends[len(b.sends)-1]
		l.health.failed(b.begun, last.reply.Err, last.call.Key)
	}
}

// served ends the unserved time, if there is one.
func (h *health) served(now time.Time) {
	h.lastServed.Store(int64(now.Sub(h.pipeline.begun)))
	if !h.isUnserved.Load() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.since.IsZero() {
		return
	}
	h.since, h.why, h.dialErr, h.key, h.probes = time.Time{}, nil, nil, nil, 0
	h.isUnserved.Store(false)
	h.pipeline.unserved.Add(-1)
	if h.timer != nil && h.timer.Stop() {
		h.probing = false
	}
}

// failed records that a command was not served which was sent at begun or after, or could not be
// sent since then. The unserved time begins with the first such command since the last reply.
func (h *health) failed(begun time.Time, why error, key []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.why = why
	switch {
	case command.IsUnreached(why):
		h.dialErr = why
	case !errors.Is(why, command.ErrNoReply): // there was a connection
		h.dialErr = nil
	}
	if h.since.IsZero() {
		h.since = begun
		if last := h.pipeline.begun.Add(time.Duration(h.lastServed.Load())); last.After(begun) {
			h.since = last
		}
		h.key = append([]byte(nil), key...)
		h.isUnserved.Store(true)
		h.pipeline.unserved.Add(1)
	}
	if !h.probing && h.pipeline.isWatched() {
		h.probeLater()
	}
}

// state returns since when the server has not served any command, and the last failure. The
// time is zero if the server has served the last command.
func (h *health) state() (since time.Time, why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.since, h.why
}

// noReply returns the error of a call without a reply at its deadline. The client may still
// be trying to connect then: if the server could not be reached in an earlier try, the error
// is that of the earlier try. The client may also be waiting for a connection of its pool.
func (h *health) noReply(failure error) error {
	if failure != nil && command.IsUnreached(failure) {
		return failure
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dialErr != nil {
		return h.dialErr
	}
	if h.server != nil {
		if conns := topology.BusyPool(h.server); conns > 0 {
			return &command.BusyPoolError{Conns: conns}
		}
	}
	return command.ErrNoReply
}

// The pauses between probes grow from minProbePause to maxProbePause.
const (
	minProbePause = 50 * time.Millisecond
	maxProbePause = 500 * time.Millisecond
)

// probeBound is how long a probe may take. A later reply counts, too.
const probeBound = 500 * time.Millisecond

// probeLater sets the timer of the next probe. The caller has locked mu.
func (h *health) probeLater() {
	h.probing = true
	h.timer = time.AfterFunc(backoff.Pause(h.probes, minProbePause, maxProbePause), h.probe)
	h.probes++
}

// probe sends a probe if the server still serves no command. Probes end when the Pipeline
// is closed.
func (h *health) probe() {
	h.pipeline.work.Add()
	defer h.pipeline.work.Done()
	h.mu.Lock()
	if h.since.IsZero() || h.pipeline.closed.Load() {
		h.probing = false
		h.mu.Unlock()
		return
	}
	p := &probe{health: h}
	p.Begin(p, probeBound, 0, false)
	p.Key = h.key
	h.mu.Unlock()
	h.lane.do(&p.Call)
}

// probed sends the next probe later, unless the lane has recorded a reply.
func (h *health) probed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.probing = false
	if !h.since.IsZero() && !h.pipeline.closed.Load() {
		h.probeLater()
	}
}

// A probe is a call whose reply shows that the server serves commands.
type probe struct {
	Call
	health *health
}

// Command returns the harmless write.
func (p *probe) Command(int) command.Command { return p.health.pipeline.probeCommand(p.Key) }

// Fallback returns nil: each reply decides.
func (*probe) Fallback(command.Command, Reply, int) command.Command { return nil }

// Settle sends the next probe later, unless this one was served.
func (p *probe) Settle(Reply, bool) { p.health.probed() }

// Late does nothing: the lane has recorded the reply.
func (*probe) Late(Reply) {}

// Free does nothing: probes are rare.
func (*probe) Free() {}

// Watch makes the Pipeline send probes while a server serves no command, which Unserved
// needs. probe returns a harmless write in the slot of a Redis key. Call Watch before the
// first call of Do.
func (p *Pipeline) Watch(probe func(key []byte) command.Command) { p.probeCommand = probe }

func (p *Pipeline) isWatched() bool { return p.probeCommand != nil }

// AllServed reports whether each server has served its last command. It is fast.
func (p *Pipeline) AllServed() bool { return p.unserved.Load() == 0 }

// Unserved returns since when the server of a Redis key has not served any command, and the
// last failure. The time is zero if the server has served its last command, or if the
// Pipeline does not watch. It does no I/O.
func (p *Pipeline) Unserved(key []byte) (since time.Time, why error) {
	if p.AllServed() || !p.isWatched() {
		return time.Time{}, nil
	}
	if l := p.knownLanesOf(key); l != nil {
		return l.health.state()
	}
	return time.Time{}, nil
}

// knownLanesOf returns the lanes to the server of a Redis key, or nil if no command was sent to
// that server yet.
func (p *Pipeline) knownLanesOf(key []byte) *lanes {
	if p.cluster == nil {
		return &p.lanes
	}
	master := p.masterOf(string(key))
	if master == nil {
		return &p.lanes
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.masters[master.Options().Addr]
}

// Close ends the probes. It does not wait for the probe in flight, which the work counts.
func (p *Pipeline) Close() { p.closed.Store(true) }
