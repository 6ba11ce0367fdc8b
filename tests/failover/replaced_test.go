package failover

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/internal/history"
)

// soakEnv is how long the scenarios are repeated, such as "10m". Without it each scenario
// runs once.
const soakEnv = "REQLOCK_SOAK"

// A loss is the part of a master's data that its failure loses.
type loss int

const (
	nothing   loss = iota
	something      // writes during the replacement, or shortly before, may be lost
	all            // all writes of the scenario
)

// A failure is a way to replace a master.
type failure struct {
	loss loss
	// isSplit is true if the old master runs commands until the repair.
	isSplit bool
	only    string // the deployment that has the failure, if the other has not
	isFast  bool   // the fast tier runs it
	// before runs before the first write.
	before func(d *deployment, master *redistest.Server)
	// fail makes the master fail, replace returns when there is another master, and
	// repair when the old master is a replica.
	fail, replace, repair func(d *deployment, master *redistest.Server)
}

func doNothing(*deployment, *redistest.Server) {}

func cutOff(_ *deployment, master *redistest.Server) { master.RefuseReplicas(true) }

func kill(_ *deployment, master *redistest.Server) { master.Kill() }

func pause(_ *deployment, master *redistest.Server) { master.Pause() }

func awaitFailover(d *deployment, master *redistest.Server) { d.awaitFailover(master) }

func restart(d *deployment, master *redistest.Server) {
	master.Restart()
	d.await()
}

func resume(d *deployment, master *redistest.Server) {
	master.Resume()
	master.RefuseReplicas(false)
	d.await()
}

var failures = map[string]failure{
	"the master is killed": {
		loss: nothing, isFast: true,
		before: doNothing, fail: kill, replace: awaitFailover, repair: restart,
	},
	"the master is killed with its data": {
		loss:   all,
		before: cutOff, fail: kill, replace: awaitFailover, repair: restart,
	},
	// When it runs again it runs commands until it learns of the new master.
	"the master is paused": {
		loss:   something,
		before: doNothing, fail: pause, replace: awaitFailover, repair: resume,
	},
	"the master is paused with its data": {
		loss:   all,
		before: cutOff, fail: pause, replace: awaitFailover, repair: resume,
	},
	"the master and its replica change roles": {
		loss: nothing, only: "cluster", before: doNothing, fail: doNothing,
		replace: func(d *deployment, master *redistest.Server) { d.switchFrom(master) }, repair: doNothing,
	},
	// The old master runs commands until it learns of the new master.
	"an operator replaces the master": {
		loss: something, only: "sentinel", before: doNothing, fail: doNothing,
		replace: func(d *deployment, master *redistest.Server) { d.switchFrom(master) }, repair: doNothing,
	},
	"a replica takes over": {
		loss: all, only: "cluster", before: cutOff, fail: doNothing,
		replace: func(d *deployment, master *redistest.Server) { d.cluster.Takeover(master) },
		repair: func(d *deployment, master *redistest.Server) {
			master.RefuseReplicas(false)
			d.await()
		},
	},
	"two masters at once": {
		loss: something, isSplit: true, only: "sentinel", before: doNothing, fail: doNothing,
		replace: func(d *deployment, _ *redistest.Server) { d.sentinels.Split() },
		repair:  func(d *deployment, _ *redistest.Server) { d.sentinels.Heal() },
	},
}

func (f failure) runsOn(deployment string) bool { return f.only == "" || f.only == deployment }

// A master is replaced, in each way, while callers hold its locks, wait for them and
// commit answers.
func TestAMasterIsReplaced(t *testing.T) {
	parallelInFastTier(t)
	for deployed, start := range deployments {
		t.Run(deployed, func(t *testing.T) {
			if deployed == "cluster" {
				suite.Full(t, "repeats the failures on Redis Cluster")
			}
			t.Parallel()
			d := start(t)
			end := time.Now().Add(suite.Duration(t, soakEnv, 0))
			for round := 0; round == 0 || time.Now().Before(end); round++ {
				for name, f := range failures { // in any order
					if !f.runsOn(deployed) {
						continue
					}
					t.Run(name, func(t *testing.T) {
						if !f.isFast {
							suite.Full(t, "repeats the test with each other way to replace a master")
						}
						s := &scenario{
							deployment: d, t: t, failure: f, ledger: newLedger(), history: history.NewRecorder(), failed: make(chan struct{}),
							promoted: make(chan struct{}),
							name:     fmt.Sprintf("%s-%d", strings.ReplaceAll(name, " ", "-"), round),
						}
						masters := d.masters()
						s.master = masters[rand.IntN(len(masters))]
						s.run()
					})
				}
			}
			d.checkLeftovers(t)
		})
	}
}
