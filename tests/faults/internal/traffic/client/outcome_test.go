package client

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

func TestMain(m *testing.M) { suite.Main(m) }

// A disruption excuses the outcome Unavailable, and nothing excuses Failed: no other error may
// become Unavailable.
func TestOutcomes(t *testing.T) {
	active := t.Context()
	ended, cancel := context.WithCancel(active)
	cancel()
	for name, test := range map[string]struct {
		ctx  context.Context
		err  error
		want history.Outcome
	}{
		"unavailable":                      {active, &core.Error{Kind: core.ErrUnavailable, Cause: context.Canceled}, history.Unavailable},
		"the caller's context has ended":   {ended, &core.Error{Kind: core.ErrUnavailable, Cause: context.Canceled}, history.Deadline},
		"lost, and the context has ended":  {ended, core.ErrLost, history.Lost},
		"lost, wrapped":                    {active, fmt.Errorf("so: %w", core.ErrLost), history.Lost},
		"another payload":                  {active, &core.Error{Kind: core.ErrMismatch}, history.Mismatch},
		"closed":                           {active, &core.Error{Kind: core.ErrClosed}, history.Failed},
		"a full queue":                     {active, &core.Error{Kind: core.ErrQueueFull}, history.Failed},
		"any other error":                  {active, errors.New("?"), history.Failed},
		"any other, the context has ended": {ended, errors.New("?"), history.Failed},
	} {
		if got := outcomeOf(test.ctx, test.err); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
