package failover

import (
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// A loss says what of that which a master was told before it failed is lost.
type loss int

const (
	nothing   loss = iota
	something      // that which it is told while it is replaced, or a moment before, may be
	all            // all that it was told in the scene
)

// A failure is a way in which a master is replaced.
type failure struct {
	loss loss
	// split is true if the old master takes commands until it is healed.
	split bool
	only  string // the deployment that has it, if only one does
	// before runs before anything is written.
	before func(d *deployment, master *redistest.Server)
	// strike makes the master fail, replace returns when there is another one,
	// and heal when the old one is back as a replica.
	strike, replace, heal func(d *deployment, master *redistest.Server)
}

func leave(*deployment, *redistest.Server) {}

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
		loss:   nothing,
		before: leave, strike: kill, replace: awaitFailover, heal: restart,
	},
	"the master is killed with its data": {
		loss:   all,
		before: cutOff, strike: kill, replace: awaitFailover, heal: restart,
	},
	// When it goes on it takes commands until it is told.
	"the master stands still": {
		loss:   something,
		before: leave, strike: pause, replace: awaitFailover, heal: resume,
	},
	"the master stands still with its data": {
		loss:   all,
		before: cutOff, strike: pause, replace: awaitFailover, heal: resume,
	},
	"roles change on purpose": {
		loss: nothing, only: "cluster", before: leave, strike: leave,
		replace: func(d *deployment, master *redistest.Server) { d.switchFrom(master) }, heal: leave,
	},
	// The old master takes commands until it is told.
	"the master is replaced on purpose": {
		loss: something, only: "sentinel", before: leave, strike: leave,
		replace: func(d *deployment, master *redistest.Server) { d.switchFrom(master) }, heal: leave,
	},
	"the master is overtaken": {
		loss: all, only: "cluster", before: cutOff, strike: leave,
		replace: func(d *deployment, master *redistest.Server) { d.cluster.Takeover(master) },
		heal: func(d *deployment, master *redistest.Server) {
			master.RefuseReplicas(false)
			d.await()
		},
	},
	"two masters at once": {
		loss: something, split: true, only: "sentinel", before: leave, strike: leave,
		replace: func(d *deployment, _ *redistest.Server) { d.sentinels.Split() },
		heal:    func(d *deployment, _ *redistest.Server) { d.sentinels.Heal() },
	},
}

// short are the failures of a short run.
var short = map[string]bool{"the master is killed": true, "the master is killed with its data": true}

// played reports whether the failure is played on the deployment.
func (f failure) played(name, deployment string) bool {
	return (f.only == "" || f.only == deployment) && (!testing.Short() || short[name])
}
