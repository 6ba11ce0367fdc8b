package campaign

import (
	"github.com/reqlock/reqlock/tests/faults/internal/history"
	"github.com/reqlock/reqlock/tests/faults/internal/validate"
	"github.com/reqlock/reqlock/tests/faults/internal/watchdog"
)

// watchStalls watches this process, which also runs the network, until stop is called. Stop
// returns the stalls.
func watchStalls() (stop func() []history.Disruption) {
	var seen []history.Disruption
	end := watchdog.Watch(stallTime, func(from, to int64) {
		seen = append(seen, history.Disruption{Name: validate.Stalled + " machine", From: from, To: to})
	})
	return func() []history.Disruption {
		end()
		return seen
	}
}
