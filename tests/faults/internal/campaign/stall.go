package campaign

import (
	"github.com/reqlock/reqlock/tests/faults/internal/check"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
	"github.com/reqlock/reqlock/tests/faults/internal/stall"
)

// watchStalls watches this process, in which the network is, until stop is called, and
// then returns the stalls.
func watchStalls() (stop func() []history.Trouble) {
	var seen []history.Trouble
	end := stall.Watch(stallTime, func(from, to int64) {
		seen = append(seen, history.Trouble{Name: check.Stalled + " machine", From: from, To: to})
	})
	return func() []history.Trouble {
		end()
		return seen
	}
}
