package inspect

import (
	"context"
	"fmt"
	"strings"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/bridge"
)

// maxDescribed is how many leases the event of a change describes.
const maxDescribed = 20

// observeEnded sends the event of leases that have ended, or have perhaps ended if err is not nil.
func (i *Inspector) observeEnded(ctx context.Context, kind core.EventKind, lock Lock, ended []Holder, after string, err error) {
	change := bridge.Change{Kind: int(kind), Key: lock.Key.raw, Shared: lock.Shared, Before: describe(ended), After: after, Err: err}
	if change.Key == "" {
		change.Before = "key " + lock.Key.String() + ", " + change.Before
	}
	i.observe(bridge.NewChange(ctx, change).(core.Event))
}

// observe calls the functions of WithObserver.
func (i *Inspector) observe(e core.Event) { observeEach(i.observers, e) }

// observeEach calls all observers, also if one of them panics.
func observeEach(observers []func(core.Event), e core.Event) {
	if len(observers) == 0 {
		return
	}
	defer observeEach(observers[1:], e)
	observers[0](e)
}

// describe says what the leases were.
func describe(leases []Holder) string {
	var words []string
	for _, h := range leases[:min(maxDescribed, len(leases))] {
		word := "revoked"
		if h.Kind == HolderProcess {
			word = "held by process " + h.Process
		}
		words = append(words, word+", lease "+string(h.Lease))
	}
	if more := len(leases) - maxDescribed; more > 0 {
		words = append(words, fmt.Sprintf("%d more", more))
	}
	return strings.Join(words, "; ")
}
