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
	late *adapter.LateStream[*Call]
}

// late runs a stream that takes its lock with the first message.
func (i *locking) late(ctx context.Context, conn connect.StreamingHandlerConn, next connect.StreamingHandlerFunc) error {
	s := &stream{conn, i.lock.Late(ctx, i.rpc, conn.Spec().Procedure, i.refused)}
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
	call := NewCall(s.late.CallContext(), s.Spec(), s.Peer(), s.RequestHeader(), m)
	if refusal := s.late.Enter(call); refusal != nil {
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
