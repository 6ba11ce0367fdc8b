package adapter

import (
	"context"
	"sync"

	"github.com/reqlock/reqlock/core"
)

// A LateStream is a stream that enters a Lock with its first message, because its key needs the
// message. Nothing is sent before that. An adapter wraps the stream of its framework:
//
//	func (s *stream) Receive(m any) error {
//		locked, err := s.late.State()
//		if err != nil {
//			return err
//		}
//		if err := s.Stream.Receive(m); locked || err != nil {
//			return err
//		}
//		return s.late.Enter(newCall(s.late.CallContext(), m))
//	}
//
//	func (s *stream) Send(m any) error {
//		if err := s.late.TooEarly(); err != nil {
//			return err
//		}
//		return s.Stream.Send(m)
//	}
//
// A LateStream is safe for concurrent use, except that one goroutine receives.
type LateStream[R any] struct {
	lock   *Lock[R]
	rpc    RPC[R]
	method string
	refuse func(call R, err error) error
	ctx    lateContext

	mu      sync.Mutex
	locked  bool
	entry   Entry // once it is locked
	refusal error // the error that ended the stream
}

// Late begins a LateStream of the method "/pkg.Service/Method", with the context of the stream. refuse
// returns the error for the client of a call that the Lock refuses because of err. The adapter keeps the
// LateStream in its stream, and does not copy it then. It calls Leave at the end.
func (m *Lock[R]) Late(ctx context.Context, rpc RPC[R], method string, refuse func(call R, err error) error) LateStream[R] {
	inner, cancel := context.WithCancelCause(ctx)
	return LateStream[R]{lock: m, rpc: rpc, method: method, refuse: refuse, ctx: lateContext{Context: inner, cancel: cancel}}
}

// Context returns the context for the handler. It is the same before and after the stream has entered
// the Lock. From then on it carries the lease, and ends with the lease.
func (s *LateStream[R]) Context() context.Context { return &s.ctx }

// CallContext returns the context of the call for Enter. It also ends if another goroutine ends the
// stream.
func (s *LateStream[R]) CallContext() context.Context { return s.ctx.Context }

// Enter enters the Lock with the first message of the call, or without one if the stream has ended. It
// returns the error for the client if the stream is refused.
func (s *LateStream[R]) Enter(call R) error {
	returned := false
	defer func() {
		if !returned { // the key has panicked, and a later message must not be the key
			_ = s.end(s.mistake("key_error", "The lock for the call could not be determined."))
		}
	}()
	entry, err := s.lock.Enter(s.ctx.Context, call)
	if err != nil {
		err = s.refuse(call, err)
		s.rpc.Refused(entry, err)
		entry.Leave()
	}
	returned = true
	if err != nil {
		return s.end(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusal != nil { // set by another goroutine meanwhile
		entry.Leave()
		return s.refusal
	}
	s.locked, s.entry = true, entry
	s.ctx.lock(entry.Context())
	return nil
}

// State returns whether the stream has entered the Lock, and the error that has ended the stream, or
// nil.
func (s *LateStream[R]) State() (locked bool, refusal error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.locked, s.refusal
}

// Entry returns the Entry of the stream, or one that is not valid before the stream has entered the Lock.
func (s *LateStream[R]) Entry() Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.entry
}

// TooEarly is for a handler that sends. It returns nil if the stream has entered the Lock, and otherwise
// the error that ends the stream. That the handler has not received the message with the key is a
// mistake of the program, of which the observers learn once for each method, unless the client has left.
func (s *LateStream[R]) TooEarly() error {
	if locked, refusal := s.State(); locked || refusal != nil {
		return refusal
	}
	own, hasLeft := s.tooEarly(), s.ctx.Err() != nil // the client
	err := s.end(own)
	if err == own && !hasLeft { //nolint:errorlint // the very error
		Warn(s.lock.locker, sentTooEarly{s.lock.mistakes, s.method}, s.lock.mistakes.adapter.Errorf("%s ends with INTERNAL, because its handler sends or "+
			"returns before it has received the message with the key: receive it first", s.method))
	}
	return err
}

// A sentTooEarly is what a LateStream warns of once.
type sentTooEarly struct {
	by     *mistakeCheck
	method string
}

// Returned says that the handler of the stream has returned err. It returns the error for the client, as
// RPC.LossOf does. If the stream was refused, that is the refusal.
func (s *LateStream[R]) Returned(err error) error {
	if err == nil {
		err = s.TooEarly()
	} else if _, refusal := s.State(); refusal != nil {
		err = refusal
	}
	return s.rpc.LossOf(&s.ctx, err)
}

// Leave frees the locks. A goroutine of the handler that still runs can no longer enter the Lock.
func (s *LateStream[R]) Leave() {
	if locked, refusal := s.State(); !locked && refusal == nil {
		_ = s.end(s.tooEarly())
	}
	s.Entry().Leave()
	s.ctx.cancel(nil)
}

// end ends the stream unless it has entered the Lock: after that nothing is received or sent. It returns
// the error that ended the stream, or nil.
func (s *LateStream[R]) end(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.locked && s.refusal == nil {
		s.refusal = err
		s.ctx.cancel(err)
	}
	return s.refusal
}

// tooEarly returns the error of a handler that has not received the message with the key.
func (s *LateStream[R]) tooEarly() error {
	return s.mistake("internal", "reqlock: the handler sent or returned before it received the message with the key")
}

// mistake returns the error for the client of a stream with a mistake in the server's code.
func (s *LateStream[R]) mistake(code, detail string) error {
	return s.rpc.Refuse(streamMistake{core.Refusal{Code: code, GRPC: rpcInternal, Detail: detail}}, nil)
}

// A streamMistake is an error with a refusal of its own.
type streamMistake struct{ refusal core.Refusal }

// Error returns the text of the refusal.
func (m streamMistake) Error() string { return m.refusal.Detail }

// A lateContext is the context of a LateStream. So the handler, and interceptors before it, may read the
// context at any time.
type lateContext struct {
	context.Context // ends with the stream, and, if it is watched, with the lease
	cancel          context.CancelCauseFunc

	mu      sync.Mutex
	locked  context.Context // of the lease, which is derived from Context; nil before the lock is taken
	watched bool            // something waited for the end of Context before the lock was taken
}

// lock sets the context of the lease.
func (c *lateContext) lock(locked context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.locked = locked
	if c.watched {
		context.AfterFunc(locked, func() { c.cancel(context.Cause(locked)) })
	}
}

// ending returns the context that ends with the stream and with the lease, for a caller that holds mu.
func (c *lateContext) ending() context.Context {
	if c.locked != nil && !c.watched {
		return c.locked
	}
	return c.Context
}

// Done returns the channel that is closed at the end of the stream or of the lease.
func (c *lateContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watched = c.watched || c.locked == nil
	return c.ending().Done()
}

// Err returns why the stream or the lease has ended, or nil.
func (c *lateContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ending().Err()
}

// A waitingKey has a value in the context of a LateStream until the stream has entered the Lock.
type waitingKey struct{}

// IsLate reports whether a context is that of a LateStream which has not entered its Lock yet. A stream
// inside is a LateStream, too, so that locks are taken from the outside inwards.
func IsLate(ctx context.Context) bool { return ctx.Value(waitingKey{}) != nil }

// Value returns a value of the lease's context, once the lock is taken.
func (c *lateContext) Value(key any) any {
	c.mu.Lock()
	locked, ending := c.locked, c.ending()
	c.mu.Unlock()
	own := c.Context.Value(key)
	switch {
	case own == c.Context && ending == c.Context:
		return own // package context looks for the parent that it can cancel from, and so needs no goroutine
	case locked != nil:
		return locked.Value(key)
	case key == waitingKey{}:
		return true
	}
	return own
}
