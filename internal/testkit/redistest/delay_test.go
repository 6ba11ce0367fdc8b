package redistest

import (
	"testing"
	"time"
)

func TestDelayMakesCommandsAndRepliesLate(t *testing.T) {
	t.Parallel()
	const delay = 50 * time.Millisecond
	proxy, observer := newPair(t)
	client := dialWire(t, proxy.Addr())
	client.send("PING")
	client.expect("+PONG\r\n")

	proxy.Delay(delay)
	sent := time.Now()
	client.send("SET k v")
	awaitKey(t, observer, "k", "v")
	if took := time.Since(sent); took < delay {
		t.Errorf("a command took %v", took)
	}
	client.expect("+OK\r\n")
	if took := time.Since(sent); took < 2*delay {
		t.Errorf("a command and its reply took %v", took)
	}
}
