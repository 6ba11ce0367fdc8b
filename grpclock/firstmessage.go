package grpclock

import (
	"google.golang.org/grpc/codes"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// The errors of streams with a mistake in the server's code.
var (
	// errTooEarly is for a handler that sends or returns before it has received the
	// message with the key.
	errTooEarly = newRefusal(statusFor(core.Refusal{
		Code: "internal", GRPC: uint32(codes.Internal),
		Detail: "reqlock: the handler sent or returned before it received the message with the key",
	}), nil)
	// errPanicked is for a handler that continues after the key has panicked.
	errPanicked = newRefusal(statusFor(core.Refusal{
		Code: "key_error", GRPC: uint32(codes.Internal), Detail: "The lock for the call could not be determined.",
	}), nil)
)

// enter takes the lock for the first message; first is nil if the stream has ended
// without one.
func (s *stream) enter(first any) error {
	panicked := true
	defer func() {
		if panicked { // a later message must not be the key
			_ = s.refuse(errPanicked)
		}
	}()
	ctx := s.ctx.Context // also ends if another goroutine ends the stream
	call := NewCall(ctx, s.method, first)
	entry, err := s.c.lock.Enter(ctx, call)
	if err != nil {
		err = s.c.refusalOf(call, err)
		s.c.rpc.Refused(entry, err)
		entry.Leave()
	}
	panicked = false
	if err != nil {
		return s.refuse(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusal != nil { // set by another goroutine during Enter
		entry.Leave()
		return s.refusal
	}
	s.locked, s.entry = true, entry
	s.ctx.lock(entry.Context())
	if len(s.header) == 0 {
		return nil
	}
	return s.ServerStream.SetHeader(s.header)
}

// state returns whether the stream has its lock, and the error that ended the stream,
// or nil.
func (s *stream) state() (locked bool, refusal error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.locked, s.refusal
}

// refuse ends the stream unless it has its lock: after that nothing is received or
// sent. It returns the error that ended the stream, or nil.
func (s *stream) refuse(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.locked && s.refusal == nil {
		s.refusal = err
		s.ctx.cancel(err)
	}
	return s.refusal
}

// tooEarly is refuse for a handler that sends or returns before it has received the message with the
// key, which is a mistake of the program.
func (s *stream) tooEarly() error {
	err := s.refuse(errTooEarly)
	if err == errTooEarly { //nolint:errorlint // the very error
		adapter.Warn(s.c.locks, tooEarly{s.c, s.method}, self.Errorf("%s ends with INTERNAL, because its handler sends or returns before it has "+
			"received the message with the key: receive it first", s.method))
	}
	return err
}

// A tooEarly is what a stream warns of once.
type tooEarly struct {
	interceptor *config
	method      string
}

// result returns the error of the stream after its handler has returned.
func (s *stream) result(err error) error {
	if err == nil {
		return s.tooEarly()
	}
	if _, refusal := s.state(); refusal != nil {
		return refusal
	}
	return err
}

// end frees the lock. A goroutine of the handler that still runs can no longer take
// the lock.
func (s *stream) end() {
	_ = s.refuse(errTooEarly)
	s.entry.Leave()
	s.ctx.cancel(nil)
}
