package connectlock

import (
	"context"
	"errors"
	"io"
	"sync"

	"connectrpc.com/connect"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// A stream takes its lock when the handler receives the first message. Nothing is sent before that.
type stream struct {
	connect.StreamingHandlerConn
	i   *locking
	ctx *lateContext

	mu      sync.Mutex
	locked  bool
	entry   adapter.Entry // once it is locked
	refusal error         // the error that ended the stream
}

// late runs a stream that takes its lock with the first message.
func (i *locking) late(ctx context.Context, conn connect.StreamingHandlerConn, next connect.StreamingHandlerFunc) error {
	s := &stream{StreamingHandlerConn: conn, i: i, ctx: newLateContext(ctx)}
	defer s.end()
	return i.rpc.LossOf(s.ctx, s.result(next(s.ctx, s))) //nolint:contextcheck // derived from ctx
}

// Receive receives a message, and takes the lock with the first one.
func (s *stream) Receive(m any) error {
	locked, err := s.state()
	if err != nil {
		return err
	}
	err = s.StreamingHandlerConn.Receive(m)
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

// Send sends a message under the lock.
func (s *stream) Send(m any) error {
	if err := s.tooEarly(); err != nil {
		return err
	}
	return s.StreamingHandlerConn.Send(m)
}

// enter takes the lock for the first message; first is nil if the stream has ended without one.
func (s *stream) enter(first any) error {
	panicked := true
	defer func() {
		if panicked { // a later message must not be the key
			_ = s.refuse(mistake("key_error", "The lock for the call could not be determined."))
		}
	}()
	ctx := s.ctx.Context // also ends if another goroutine ends the stream
	call := NewCall(ctx, s.Spec(), s.Peer(), s.RequestHeader(), first)
	entry, err := s.i.lock.Enter(ctx, call)
	if err != nil {
		err = s.i.refuse(entry, call, err)
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
	return nil
}

// state returns whether the stream has its lock, and the error that ended the stream, or nil.
func (s *stream) state() (locked bool, refusal error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.locked, s.refusal
}

// refuse ends the stream unless it has its lock: after that nothing is received or sent. It returns
// the error that ended the stream, or nil.
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
	if locked, refusal := s.state(); locked || refusal != nil {
		return refusal
	}
	own := mistake("internal", "reqlock: the handler sent or returned before it received the message with the key")
	err := s.refuse(own)
	if err == own { //nolint:errorlint // the very error
		procedure := s.Spec().Procedure
		adapter.Warn(s.i.lock.Locker(), tooEarly{s.i, procedure}, self.Errorf("%s ends with INTERNAL, because its handler sends or returns before "+
			"it has received the message with the key: receive it first", procedure))
	}
	return err
}

// A tooEarly is what a stream warns of once.
type tooEarly struct {
	interceptor *locking
	procedure   string
}

// mistake returns the error of a stream with a mistake in the server's code.
func mistake(code, detail string) error {
	return &refusal{sent: errorFor(core.Refusal{Code: code, GRPC: uint32(connect.CodeInternal), Detail: detail})}
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

// end frees the lock. A goroutine of the handler that still runs can no longer take the lock.
func (s *stream) end() {
	_ = s.refuse(context.Canceled)
	s.entry.Leave()
	s.ctx.cancel(nil)
}
