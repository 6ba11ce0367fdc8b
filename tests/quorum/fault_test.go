package quorum

// A fault is what happens to a node.
type fault struct {
	name   string
	inject func(*node)
	repair func(*node)
	// isTransient is true if the node works again without repair, after its quarantine.
	isTransient bool
	// restarts is true if the fault or its repair restarts the node.
	restarts bool
}

// oneWayDelay is the delay of commands to a delayed node, and of replies from it. Both
// together exceed the timeout of a command: the node runs the command, and its reply
// comes too late.
var oneWayDelay = ttl * 3 / 16

var (
	killed = fault{
		name:     "killed",
		inject:   func(n *node) { n.server.Kill() },
		repair:   func(n *node) { n.server.Restart() },
		restarts: true,
	}
	stopped = fault{
		name:   "stopped",
		inject: func(n *node) { n.server.Pause() },
		repair: func(n *node) { n.server.Resume() },
	}
	delayed = fault{
		name:   "delayed",
		inject: func(n *node) { n.proxy.Delay(oneWayDelay) },
		repair: func(n *node) { n.proxy.Delay(0) },
	}
	cut = fault{ // what was in flight arrives at the repair
		name:   "cut",
		inject: func(n *node) { n.proxy.Partition() },
		repair: func(n *node) { n.proxy.Heal() },
	}
	restarted = fault{
		name:        "restarted empty",
		inject:      func(n *node) { n.server.Restart() },
		repair:      func(*node) {},
		isTransient: true,
		restarts:    true,
	}
)

func faults() []fault { return []fault{killed, stopped, delayed, cut, restarted} }
