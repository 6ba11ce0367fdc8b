package grpclock

import (
	"google.golang.org/grpc/codes"

	"github.com/reqlock/reqlock/core"
)

// The ends of streams whose server has made a mistake.
var (
	// errTooEarly is for a handler that goes its own way before it has received
	// the message with the key.
	errTooEarly = statusFor(core.Outcome{Code: "internal", GRPC: uint32(codes.Internal)},
		"the handler sent or returned before it received the message with the key").Err()
	// errPanicked is for one that goes on after its key function has panicked.
	errPanicked = statusFor(core.Outcome{Code: "key_error", GRPC: uint32(codes.Internal)}, "key error").Err()
)

// enter takes the lock for the first message; nil if there will be none.
func (s *stream) enter(first any) error {
	panicked := true
	defer func() {
		if panicked { // a later message must not give the key
			_ = s.refuse(errPanicked)
		}
	}()
	ctx := s.ctx.Context // ends also when another goroutine ends the stream
	call := NewCall(ctx, s.method, first)
	locked, release, err := core.Enter(ctx, s.c.locks, call, s.c.keys...)
	if err != nil {
		err = s.c.refuse(call, err)
	}
	panicked = false
	if err != nil {
		return s.refuse(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusal != nil { // by another goroutine, meanwhile
		release()
		return s.refusal
	}
	s.locked, s.release = true, release
	s.ctx.lock(locked)
	if len(s.header) == 0 {
		return nil
	}
	return s.ServerStream.SetHeader(s.header)
}

// state returns whether the stream has its lock, and why it does not go on.
func (s *stream) state() (locked bool, refusal error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.locked, s.refusal
}

// refuse ends the stream unless it has its lock: nothing is received or sent
// any more. It returns why the stream does not go on.
func (s *stream) refuse(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.locked && s.refusal == nil {
		s.refusal = err
		s.ctx.cancel(err)
	}
	return s.refusal
}

// result returns what the stream ends with when its handler has returned.
func (s *stream) result(err error) error {
	if err == nil {
		return s.refuse(errTooEarly)
	}
	if _, refusal := s.state(); refusal != nil {
		return refusal
	}
	return err
}

// end frees the lock. A goroutine that the handler has left behind gets none
// any more.
func (s *stream) end() {
	_ = s.refuse(errTooEarly)
	s.release()
	s.ctx.cancel(nil)
}
