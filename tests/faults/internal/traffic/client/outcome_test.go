package client

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

func TestOutcomes(t *testing.T) {
	going := t.Context()
	ended, cancel := context.WithCancel(going)
	cancel()
	for name, test := range map[string]struct {
		ctx  context.Context
		err  error
		want history.Outcome
	}{
		"nothing":                 {going, nil, history.Done},
		"busy":                    {going, &core.Error{Kind: core.ErrBusy}, history.Busy},
		"a wait that is over":     {going, &core.Error{Kind: core.ErrWaitTimeout}, history.WaitTimeout},
		"no redis":                {going, &core.Error{Kind: core.ErrUnavailable}, history.Unavailable},
		"no redis in time":        {going, &core.Error{Kind: core.ErrUnavailable, Cause: context.Canceled}, history.Unavailable},
		"the caller has gone":     {ended, &core.Error{Kind: core.ErrUnavailable, Cause: context.Canceled}, history.Deadline},
		"the caller's own":        {ended, context.Canceled, history.Deadline},
		"lost":                    {going, core.ErrLost, history.Lost},
		"lost, and who asks left": {ended, core.ErrLost, history.Lost},
		"held too long":           {going, core.ErrMaxHold, history.Lost},
		"interrupted":             {going, &core.Error{Kind: core.ErrInterrupted}, history.Interrupted},
		"no answer":               {going, &core.Error{Kind: core.ErrUnreplayable}, history.Unreplayable},
		"closed":                  {going, &core.Error{Kind: core.ErrClosed}, history.Failed},
		"another payload":         {going, &core.Error{Kind: core.ErrMismatch}, history.Mismatch},
		"a full queue":            {going, &core.Error{Kind: core.ErrQueueFull}, history.Failed},
		"any other":               {going, errors.New("?"), history.Failed},
		"wrapped":                 {going, fmt.Errorf("so: %w", core.ErrLost), history.Lost},
	} {
		if got := outcomeOf(test.ctx, test.err); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestOtherPanicsContinue(t *testing.T) {
	recoverInjected(func() { panic(injectedPanic{}) })
	defer func() {
		if r := recover(); r != "other" {
			t.Errorf("recovered %v", r)
		}
	}()
	recoverInjected(func() { panic("other") })
}

func TestProcessWithoutConfigIsNoClient(t *testing.T) {
	if code, client := Main(); client || code != 0 {
		t.Errorf("%d, %v", code, client)
	}
}
