package grpclock

import (
	"context"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/reqlock/reqlock/core"
)

// errTooEarly is the end of a stream whose handler goes its own way before it
// has received the message with the key.
var errTooEarly = statusFor(core.Outcome{Code: "internal", GRPC: uint32(codes.Internal)},
	"the handler sent or returned before it received the message with the key").Err()

// A stream takes its lock when the handler receives the first message. Until
// then nothing is sent.
type stream struct {
	grpc.ServerStream
	opening *Call
	c       *config
	ctx     *lateContext

	mu      sync.Mutex
	locked  bool
	release func()
	refusal error // why the stream does not go on
}

func newStream(ctx context.Context, ss grpc.ServerStream, opening *Call, c *config) *stream {
	return &stream{ServerStream: ss, opening: opening, c: c, ctx: newLateContext(ctx), release: func() {}}
}

// Context returns the context of the stream. It is the same one before and
// after the lock is taken.
func (s *stream) Context() context.Context { return s.ctx }

// RecvMsg receives a message, and takes the lock with the first one.
func (s *stream) RecvMsg(m any) error {
	locked, err := s.state()
	if err != nil {
		return err
	}
	err = s.ServerStream.RecvMsg(m)
	if locked || err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err != nil {
		m = nil
	}
	if refusal := s.enter(m); refusal != nil {
		return refusal
	}
	return err
}

// SendMsg sends a message under the lock.
func (s *stream) SendMsg(m any) error {
	if err := s.mayAnswer(); err != nil {
		return err
	}
	return s.ServerStream.SendMsg(m)
}

// SetHeader sets headers under the lock.
func (s *stream) SetHeader(md metadata.MD) error {
	if err := s.mayAnswer(); err != nil {
		return err
	}
	return s.ServerStream.SetHeader(md)
}

// SendHeader sends headers under the lock.
func (s *stream) SendHeader(md metadata.MD) error {
	if err := s.mayAnswer(); err != nil {
		return err
	}
	return s.ServerStream.SendHeader(md)
}

// enter takes the lock for the first message; nil if there will be none.
func (s *stream) enter(first any) error {
	ctx := s.ctx.Context // ends also when another goroutine ends the stream
	call := NewCall(ctx, s.opening.method, first)
	locked, release, err := core.Enter(ctx, s.c.locks, call, s.c.keys...)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.refusal != nil: // by another goroutine, meanwhile
		release()
	case err != nil:
		s.refuse(call, err)
	default:
		s.locked, s.release = true, release
		s.ctx.lock(locked)
	}
	return s.refusal
}

// state returns whether the stream has its lock, and why it does not go on.
func (s *stream) state() (locked bool, refusal error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.locked, s.refusal
}

// mayAnswer refuses the stream unless it has its lock.
func (s *stream) mayAnswer() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.locked && s.refusal == nil {
		s.refuse(s.opening, errTooEarly)
	}
	return s.refusal
}

// refuse ends the stream: nothing is received or sent any more. s.mu is held.
func (s *stream) refuse(call *Call, err error) {
	s.refusal = s.c.refuse(call, err)
	s.ctx.cancel(s.refusal)
}

// result returns what the stream ends with when its handler has returned.
func (s *stream) result(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && !s.locked && s.refusal == nil {
		s.refuse(s.opening, errTooEarly)
	}
	if s.refusal != nil {
		return s.refusal
	}
	return err
}

// end frees the lock. A goroutine that the handler has left behind gets none
// any more.
func (s *stream) end() {
	s.mu.Lock()
	if !s.locked && s.refusal == nil {
		s.refusal = errTooEarly
	}
	release := s.release
	s.mu.Unlock()
	release()
	s.ctx.cancel(nil)
}
