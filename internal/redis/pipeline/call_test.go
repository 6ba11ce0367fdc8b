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
		name            string
		err             error
		c               callState
		unknown, passes bool
	}{
		{"no connection", refused, callState{sendCount: 2}, false, true},
		{"no connection, but an earlier send is open", refused, callState{sendCount: 2, unanswered: 1}, true, true},
		{"no connection, but an earlier send broke off", refused, callState{sendCount: 2, maybeApplied: true}, true, true},
		{"broken off", io.EOF, callState{sendCount: 2, maybeApplied: true}, true, true},
		{"refused by the server, but an earlier send broke off", storetest.ServerError("READONLY x"), callState{sendCount: 2, maybeApplied: true}, true, true},
		{"refused by the server", storetest.ServerError("READONLY x"), callState{sendCount: 1}, false, true},
		{"no reply", command.ErrNoReply, callState{sendCount: 2, unanswered: 2}, true, true},
		{"a context's error is sealed", context.DeadlineExceeded, callState{sendCount: 2, maybeApplied: true}, true, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			fault := command.NewFault(test.err, test.c.uncertain())
			if fault.Unknown != test.unknown || fault.Temporary != test.passes || errors.Is(fault, context.DeadlineExceeded) {
				t.Errorf("%+v", fault)
			}
		})
	}
}
