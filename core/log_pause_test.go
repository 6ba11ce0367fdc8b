package core

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The line about a fault says how many faults had no line since the last one.
func TestLineOfAFaultCountsThoseWithoutALine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := &eventLog{logger: slog.New(slog.NewTextHandler(&out, nil))}
		fault := Event{Kind: Refused, Err: ErrUnavailable}
		for range 3 {
			log.observe(fault)
		}
		time.Sleep(faultPause)
		log.observe(fault)
		time.Sleep(faultPause)
		log.observe(fault)
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 3 || !strings.Contains(lines[1], " more=2 ") || strings.Contains(lines[0]+lines[2], "more=") {
			t.Errorf("logged %q", lines)
		}
	})
}
