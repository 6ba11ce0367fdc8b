package redistest

import (
	"testing"
	"time"
)

func TestLeaksWaitForWhatEnds(t *testing.T) {
	time.AfterFunc(0, func() { time.Sleep(time.Second) }) // as a client that was closed
	if err := Leaks(lastDial); err != nil {
		t.Error(err)
	}
}

func TestLeaksTellOfWhatStays(t *testing.T) {
	end := make(chan struct{})
	defer close(end)
	go func() { <-end }()
	if Leaks(lastDial) == nil {
		t.Error("a goroutine that stays is not seen")
	}
}
