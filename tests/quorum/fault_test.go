package quorum

// A fault is what happens to a node.
type fault struct {
	name   string
	strike func(*node)
	mend   func(*node)
	// heals is true of a node that is well again by itself, after its quarantine.
	heals bool
}

// farAway is how late words to and from a delayed node are: together more than a
// command may take, so that it does what it is told and is not heard.
const farAway = ttl * 3 / 16

var (
	killed = fault{
		name:   "killed",
		strike: func(n *node) { n.server.Kill() },
		mend:   func(n *node) { n.server.Restart() },
	}
	stopped = fault{
		name:   "stopped",
		strike: func(n *node) { n.server.Pause() },
		mend:   func(n *node) { n.server.Resume() },
	}
	delayed = fault{
		name:   "delayed",
		strike: func(n *node) { n.proxy.Delay(farAway) },
		mend:   func(n *node) { n.proxy.Delay(0) },
	}
	cut = fault{ // and what was on its way arrives, late
		name:   "cut",
		strike: func(n *node) { n.proxy.Partition() },
		mend:   func(n *node) { n.proxy.Heal() },
	}
	restarted = fault{
		name:   "restarted empty",
		strike: func(n *node) { n.server.Restart() },
		mend:   func(*node) {},
		heals:  true,
	}
)

func faults() []fault { return []fault{killed, stopped, delayed, cut, restarted} }
