package pipeline

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
)

// errNoServer is the error of a dialer whose server is down.
var errNoServer = &net.OpError{Op: "dial", Err: errors.New("connection refused")}

// The client tries to connect for a long time. The reason why it could not is known before.
func TestSilentServerIsDiagnosed(t *testing.T) {
	t.Parallel()
	inBubble(t, command.Replicas{}, func(t *testing.T, f *fake) {
		f.dialErr = errNoServer
		first := f.send("first", time.Second)
		f.next(0, "first")
		f.next(500*ms, "again first")
		first.wantReply(time.Second, errNoServer)
		second := f.send("second", 600*ms) // abandons the batch at 1.3 s
		f.next(1300*ms, "second")
		second.wantReply(1600*ms, errNoServer)
		if n := f.dials.Load(); n != 1 {
			t.Errorf("%d dials in one second", n)
		}
		third := f.send("third", 600*ms)
		f.next(1900*ms, "third")
		third.wantReply(2200*ms, errNoServer)
		if n := f.dials.Load(); n != 2 {
			t.Errorf("%d dials in two seconds", n)
		}
	})
}

func TestSilentMasterIsDiagnosed(t *testing.T) {
	t.Parallel()
	inClusterBubble(t, 2, command.Replicas{}, func(t *testing.T, f *fakeCluster) {
		f.warm(2)
		f.dialErr = errNoServer
		c := f.sendTo(2, "c", time.Second)
		f.next(0, "c")
		f.next(500*ms, "again c")
		c.wantReply(time.Second, errNoServer)
		if n := f.dials.Load(); n != 1 {
			t.Errorf("%d dials", n)
		}
	})
}
