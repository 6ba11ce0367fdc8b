package connectlock

import (
	"context"
	"errors"
	"io"

	"connectrpc.com/connect"

	"github.com/reqlock/reqlock/adapter"
)

// A stream takes its lock when the handler receives the first message. Nothing is sent before that.
type stream struct {
	connect.StreamingHandlerConn
	late adapter.LateStream[*Call]
	call *Call
}

// late runs a stream that takes its lock with the first message of the call.
func (i *locking) late(ctx context.Context, call *Call, conn connect.StreamingHandlerConn, next connect.StreamingHandlerFunc) error {
	s := &stream{conn, i.lock.Late(ctx, i.rpc, call.procedure(), i.refused), call}
	defer s.late.Leave()
	return s.late.Returned(next(s.late.Context(), s)) //nolint:contextcheck // derived from ctx
}

// Receive receives a message, and takes the lock with the first one.
func (s *stream) Receive(m any) error {
	locked, err := s.late.State()
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
	s.call.ctx, s.call.message, s.call.opening = s.late.CallContext(), m, false
	if refusal := s.late.Enter(s.call); refusal != nil {
		return refusal
	}
	return err
}

// Send sends a message under the lock.
func (s *stream) Send(m any) error {
	if err := s.late.TooEarly(); err != nil {
		return err
	}
	return s.StreamingHandlerConn.Send(m)
}
