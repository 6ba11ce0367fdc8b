package campaign

import (
	"context"
	"errors"
	"fmt"

	"github.com/reqlock/reqlock/tests/faults/internal/fault"
	"github.com/reqlock/reqlock/tests/faults/internal/validate"
)

// controlRuns is how often the control is played until it shows what it must.
const controlRuns = 3

// control is the negative control: clients who write without a look at their
// leases, and stand still meanwhile, must lose updates of the register that looks
// at no fences. Where they do not, the campaign cannot see what it looks for. All else
// must be as in any run: what is found here is a failure, like a lost update of the
// register that looks at fences.
func (c *campaign) control(ctx context.Context) error {
	r := Run{
		Fault: fault.Fault{Name: "control-careless-clients", Inject: func(*fault.System) {}},
		On:    fault.OnServer, Seed: c.settings.Seed, Careless: true,
	}
	for range controlRuns {
		report := c.runOne(ctx, r)
		switch {
		case ctx.Err() != nil:
			return nil
		case report.Failed, report.History == nil:
			fmt.Fprint(c.w, indent(report.Log))
			return errors.New("the control went wrong")
		}
		if len(report.Violations) > 0 {
			c.reportFailure(report)
			return fmt.Errorf("the control failed: careless clients explain lost updates without fences, and not what was found")
		}
		if lost := validate.LostUpdates(report.History, false); lost > 0 {
			fmt.Fprintf(c.w, "control: careless clients lost %d updates without fences, and none with fences\n", lost)
			return nil
		}
		r.Seed++
	}
	return errors.New("the control failed: careless clients lost no update, so this campaign would not see one that is lost")
}
