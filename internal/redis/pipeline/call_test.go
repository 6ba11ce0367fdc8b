package pipeline

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

func TestUncertainFaults(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Err: errors.New("refused")}
	tests := []struct {
		name               string
		err                error
		state              callState
		unknown, temporary bool
	}{
		{"no connection", refused, callState{sendCount: 2}, false, true},
		{"no connection, and the first send is unanswered", refused, callState{sendCount: 2, unanswered: 1}, true, true},
		{"no connection, and the first send may have been applied", refused, callState{sendCount: 2, maybeApplied: true}, true, true},
		{"connection closed", io.EOF, callState{sendCount: 2, maybeApplied: true}, true, true},
		{"refused by the server, and the first send may have been applied", storetest.ServerError("READONLY x"), callState{sendCount: 2, maybeApplied: true}, true, true},
		{"refused by the server", storetest.ServerError("READONLY x"), callState{sendCount: 1}, false, true},
		{"no reply", command.ErrNoReply, callState{sendCount: 2, unanswered: 2}, true, true},
		{"the error of a context is not exposed", context.DeadlineExceeded, callState{sendCount: 2, maybeApplied: true}, true, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			fault := command.NewFault(test.err, test.state.uncertain())
			if fault.Unknown != test.unknown || fault.Temporary != test.temporary || errors.Is(fault, context.DeadlineExceeded) {
				t.Errorf("%+v", fault)
			}
		})
	}
}
