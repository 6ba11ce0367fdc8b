package catalogue

func leaseRows() []Row {
	return []Row{
		{
			Number:  8,
			Trigger: "The release is called with the context of a request that has ended.",
			Right:   "It is sent nevertheless, within a time limit of its own.",
		},
		{
			Number:  9,
			Trigger: "A holder releases after its lease has expired, and another one has the key.",
			Right:   "Nothing of the other's is deleted, the late holder is told of its loss, and its own place is freed.",
		},
		{
			Number:  10,
			Trigger: "The reply to a release is lost, and the second send finds no key.",
			Right:   "That counts as released, not as a lease that was lost.",
		},
		{
			Number:  11,
			Trigger: "A renewal races the release, or goes on after it.",
			Right:   "The release waits for the renewal in flight, none is sent after it, and a renewal never creates a key.",
		},
		{
			Number:  12,
			Trigger: "A renewal fails once.",
			Right:   "It is tried again until the lease ends. An error alone is no loss.",
		},
		{
			Number:  13,
			Trigger: "The lease is lost while the work runs.",
			Right:   "The work's context ends with the cause ErrLost, before anybody else can be granted the key.",
		},
		{
			Number:  14,
			Trigger: "The holder's process stands still for longer than its lease: a long pause of the garbage collector, SIGSTOP, a frozen machine.",
			Right:   "The first thing that it learns when it goes on is that its lease is over.",
			Kind:    Limit,
			Guard: "Code that stands between its last look at the context and its write cannot be stopped by a lock. " +
				"A fencing number that the resource checks refuses that write.",
		},
		{
			Number:  15,
			Trigger: "A clock jumps: the wall clock of a client, or that by which the server lets keys expire.",
			Right: "Clients measure with a monotonic clock only. A server that jumps forward frees keys early, and the holder is told; " +
				"one that falls back keeps the key of a dead holder longer.",
			Kind: Emulated,
			Guard: "A server's jump forward can let a second holder in before the first one is told: its next renewal tells it, " +
				"and fencing numbers still rise.",
		},
	}
}
