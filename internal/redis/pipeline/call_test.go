package pipeline

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

func TestUnknownFaults(t *testing.T) {
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
		{"redirected, and the client follows no redirection", storetest.ServerError("MOVED 1 10.0.0.2:6379"), callState{sendCount: 2, maybeApplied: true}, true, true},
		{"redirected for one command", storetest.ServerError("ASK 1 10.0.0.2:6379"), callState{sendCount: 2, maybeApplied: true}, true, true},
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

// A call is sent twice at most. If both sends fail in transport, its outcome is unknown. A reply to
// the second send decides, and the first send may have been applied.
func TestCallIsSentAtMostTwice(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		first     error
		second    any
		uncertain bool
	}{
		"both replies are lost":              {io.EOF, io.EOF, true},
		"the first reply is lost":            {io.EOF, "ok", true},
		"the first send had no connection":   {&net.OpError{Op: "dial", Err: errBroken}, "ok", false},
		"a hook has stopped waiting for it":  {context.DeadlineExceeded, "ok", true},
		"the second send had no connection":  {io.EOF, &net.OpError{Op: "dial", Err: errBroken}, true},
		"neither send had a connection":      {&net.OpError{Op: "dial", Err: errBroken}, &net.OpError{Op: "dial", Err: errBroken}, false},
		"the server refuses the second send": {io.EOF, errRefused, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, command.Replicas{}, func(t *testing.T, f *fake) {
				c := f.send("c", time.Second)
				f.next(0, "c").breakDown(test.first)
				f.next(0, "again c").reply(test.second)
				if got := c.wantReply(0, test.second); got.uncertain != test.uncertain {
					t.Errorf("uncertain: %v", got.uncertain)
				}
				f.wantNoBatch()
			})
		})
	}
}
