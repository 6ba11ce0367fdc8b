package campaign

import (
	"context"
	"errors"
	"fmt"

	"github.com/reqlock/reqlock/tests/faults/internal/fault"
	"github.com/reqlock/reqlock/tests/faults/internal/validate"
)

// controlRuns is how often the control is repeated until an update is lost.
const controlRuns = 3

// control is the negative control. Its clients write without checking their leases, and
// pause beyond them: they must lose updates of the unfenced register. Otherwise the
// campaign could not see a lost update. Nothing else may be wrong: any violation of a run
// is a failure, and so is a lost update of the fenced register.
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
