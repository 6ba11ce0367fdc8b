package redistest

import (
	"strings"
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

// If each of them were late by itself, this would take minutes.
func TestWhatArrivesTogetherIsLateTogether(t *testing.T) {
	t.Parallel()
	const batch = 300
	proxy, _ := newPair(t)
	proxy.Delay(200 * time.Millisecond)
	client := dialWire(t, proxy.Addr())
	client.send(strings.Fields(strings.Repeat("PING ", batch))...)
	for range batch {
		client.expect("+PONG\r\n")
	}
}

func TestADelayedConnectionCanBeClosed(t *testing.T) {
	t.Parallel()
	proxy, _ := newPair(t)
	client := dialWire(t, proxy.Addr())
	client.send("PING")
	client.expect("+PONG\r\n")
	proxy.Delay(time.Hour)
	client.send("PING")
	client.expectSilence()
	proxy.Cut() // and the cleanup of the proxy does not wait for an hour
	client.expectClosed()
}

func TestDelayEnds(t *testing.T) {
	t.Parallel()
	proxy, _ := newPair(t)
	proxy.Delay(time.Hour)
	proxy.Delay(0)
	client := dialWire(t, proxy.Addr())
	client.send("PING")
	client.expect("+PONG\r\n")
}
