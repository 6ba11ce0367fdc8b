package core_test

import (
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
)

// An adapter that reads settings from elsewhere gets the errors of New and of Named.
func TestAdaptersCanCheckSettings(t *testing.T) {
	t.Parallel()
	noError(t, core.CheckOptions(core.WithTTL(time.Second), core.WithWait(0)))
	for want, err := range map[string]error{
		"reqlock: WithTTL: 1ms is below 100ms":                        core.CheckOptions(core.WithWait(0), core.WithTTL(time.Millisecond)),
		"reqlock: CheckOptions: an option is nil":                     core.CheckOptions(nil),
		"reqlock: Named cannot use the name of idempotent requests":   core.CheckName("i"),
		"reqlock: Named needs a name of letters, digits, '-', '_', '": core.CheckName("4you"),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	noError(t, core.CheckName("account/v1"))
}

// A view may exclude an option that New accepts.
func TestAdaptersCanCheckSettingsOfAView(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, locks *core.Locker) {
		for want, err := range map[string]error{
			"reqlock: WithPermits: WithFencing needs numbers that rise": locks.CheckOptions(core.WithPermits(2)),
			"reqlock: WithTTL: 1ms is below 100ms":                      locks.CheckOptions(core.WithTTL(time.Millisecond)),
			"reqlock: WithPrefix is a setting of the whole Locker":      locks.CheckOptions(core.WithPrefix("p:")),
			"reqlock: With: an option is nil":                           locks.CheckOptions(nil),
		} {
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		}
		noError(t, locks.CheckOptions(core.WithShared(true), core.WithWait(0)))
	}, core.WithFencing(true))
}
