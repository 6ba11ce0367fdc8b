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
	method string
	c      *config
	ctx    *lateContext

	mu      sync.Mutex
	locked  bool
	header  metadata.MD   // set before the lock was taken
	entry   adapter.Entry // once it is locked
	refusal error         // the error that ended the stream
}

// late runs a stream that takes its lock with the first message.
func (c *config) late(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	s := &stream{
		ServerStream: ss, method: info.FullMethod, c: c,
		ctx: newLateContext(ss.Context()),
	}
	defer s.end()
	err := c.rpc.LossOf(s.ctx, s.result(handler(srv, s)))
	if ss.Context().Value(waitingKey{}) == nil { // otherwise the outer interceptor decides how the stream ends
		s.mu.Lock()
		entry := s.entry // another goroutine may still receive the first message
		s.mu.Unlock()
		pushBack(ss.Context(), entry, err)
	}
	return err
}

// Context returns the context of the stream. It is the same before and after the lock
// is taken.
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
	if err := s.tooEarly(); err != nil {
		return err
	}
	return s.ServerStream.SendMsg(m)
}

// SendHeader sends headers under the lock.
func (s *stream) SendHeader(md metadata.MD) error {
	if err := s.tooEarly(); err != nil {
		return err
	}
	return s.ServerStream.SendHeader(md)
}

// SetHeader sets headers, which are passed on when the lock is taken.
func (s *stream) SetHeader(md metadata.MD) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.refusal != nil:
		return s.refusal
	case s.locked:
		return s.ServerStream.SetHeader(md)
	}
	s.header = metadata.Join(s.header, md)
	return nil
}
