package catalogue

func leaseRows() []Row {
	return []Row{
		{
			Number:  8,
			Trigger: "Release is called with the context of a request that has ended.",
			Right:   "The release is sent all the same, within its own time limit.",
		},
		{
			Number:  9,
			Trigger: "A holder releases after its lease has expired, and another client holds the key.",
			Right:   "The other client's key stays. The late holder gets ErrLost, and its place in the queue is freed.",
		},
		{
			Number:  10,
			Trigger: "The reply to a release is lost, and the release is sent again. It finds no key.",
			Right:   "That counts as released, not as a lost lease.",
		},
		{
			Number:  11,
			Trigger: "A renewal runs concurrently with the release, or after it.",
			Right:   "The release waits for the renewal in flight. No renewal is sent after it, and a renewal never creates a key.",
		},
		{
			Number:  12,
			Trigger: "A renewal fails once.",
			Right:   "The renewal is retried until the lease ends. An error alone does not end the lease.",
		},
		{
			Number:  13,
			Trigger: "The lease is lost while the work runs.",
			Right:   "The work's context ends with the cause ErrLost before another client can be granted the key.",
		},
		{
			Number:  14,
			Trigger: "The holder's process is paused for longer than its lease: by the garbage collector, by SIGSTOP, or with its machine.",
			Right: "When the process continues, the first thing it learns is that its lease has ended. Exception: while a machine is suspended, its " +
				"monotonic clock stands still. Then the process learns it from its next renewal, up to a third of the TTL later.",
			Kind: Limit,
			Guard: "No lock can stop code between its last check of the context and its write, or before it can know how long its machine was " +
				"suspended. If the resource checks fencing numbers, it refuses that write.",
		},
		{
			Number:  15,
			Trigger: "A clock jumps: the wall clock of a client, or the clock by which the server expires keys.",
			Right: "Clients measure time with a monotonic clock only. If the server's clock jumps forward, keys expire early, and the holder is " +
				"notified. If it jumps back, the key of a dead holder stays longer.",
			Kind: Emulated,
			Guard: "After a jump forward a second client can be granted the lock before the first one is notified, which happens at its next " +
				"renewal. Fencing numbers still rise.",
		},
	}
}
