package grpclock

import (
	"context"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/reqlock/reqlock/adapter"
)

// A stream takes its lock when the handler receives the first message. Nothing is
// sent before that.
type stream struct {
	grpc.ServerStream
	late adapter.LateStream[*Call]
	call *Call

	mu     sync.Mutex
	header metadata.MD // set before the lock was taken
}

// late runs a stream that takes its lock with the first message of the call.
func (c *config) late(srv any, ss grpc.ServerStream, call *Call, handler grpc.StreamHandler) error {
	s := &stream{ServerStream: ss, late: c.lock.Late(call.ctx, c.rpc, call.method, c.refused), call: call}
	defer s.late.Leave()
	err := s.late.Returned(handler(srv, s))
	if !adapter.IsLate(ss.Context()) { // otherwise the outer interceptor decides how the stream ends
		pushBack(ss.Context(), s.late.Entry(), err)
	}
	return err
}

// Context returns the context of the stream. It is the same before and after the lock
// is taken.
func (s *stream) Context() context.Context { return s.late.Context() }

// RecvMsg receives a message, and takes the lock with the first one.
func (s *stream) RecvMsg(m any) error {
	locked, err := s.late.State()
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
	s.call.ctx, s.call.message, s.call.opening = s.late.CallContext(), m, false
	if refusal := s.late.Enter(s.call); refusal != nil {
		return refusal
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.header) > 0 {
		if err := s.ServerStream.SetHeader(s.header); err != nil {
			return err
		}
	}
	return err
}

// SendMsg sends a message under the lock.
func (s *stream) SendMsg(m any) error {
	if err := s.late.TooEarly(); err != nil {
		return err
	}
	return s.ServerStream.SendMsg(m)
}

// SendHeader sends headers under the lock.
func (s *stream) SendHeader(md metadata.MD) error {
	if err := s.late.TooEarly(); err != nil {
		return err
	}
	return s.ServerStream.SendHeader(md)
}

// SetHeader sets headers, which are passed on when the lock is taken.
func (s *stream) SetHeader(md metadata.MD) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch locked, refusal := s.late.State(); {
	case refusal != nil:
		return refusal
	case locked:
		return s.ServerStream.SetHeader(md)
	}
	s.header = metadata.Join(s.header, md)
	return nil
}
