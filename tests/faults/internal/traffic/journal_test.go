package traffic

import (
	"testing"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
	"github.com/reqlock/reqlock/tests/faults/internal/traffic/client"
)

func TestOnlyAGrantedLockServesAClient(t *testing.T) {
	for name, c := range map[string]struct {
		report         client.Report
		grants, served int
	}{
		"a lock":             {client.Report{Op: history.Op{Client: 2, Kind: history.Lock, Outcome: history.Granted}}, 1, 1},
		"a try":              {client.Report{Op: history.Op{Client: 2, Kind: history.Try, Outcome: history.Granted}}, 1, 1},
		"fast leases":        {client.Report{FastLeases: []history.FastLease{{Client: 2}, {Client: 1}, {Client: 2}}}, 3, 2},
		"an attempt":         {client.Report{Op: history.Op{Client: 2, Kind: history.Begin, Outcome: history.Granted}}, 0, 0},
		"a key that is busy": {client.Report{Op: history.Op{Client: 2, Kind: history.Try, Outcome: history.Busy}}, 0, 0},
		"a release":          {client.Report{Op: history.Op{Client: 2, Kind: history.Release, Outcome: history.Done}}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJournal()
			j.record(c.report)
			if j.grantCount() != c.grants || j.servedCount() != c.served {
				t.Errorf("%d grants of %d clients, want %d of %d", j.grantCount(), j.servedCount(), c.grants, c.served)
			}
		})
	}
}
