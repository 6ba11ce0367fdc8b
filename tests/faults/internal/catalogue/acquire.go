package catalogue

func acquireRows() []Row {
	return []Row{
		{
			Number:  1,
			Trigger: "The server executes the command that takes the key, and its reply is lost. The client sends the command again.",
			Right: "The second command finds the token of the first one and is granted the same lease. If no reply arrives at all, the key is " +
				"freed in the background.",
		},
		{
			Number:  2,
			Trigger: "The caller's deadline passes while the command is under way.",
			Right:   "The caller gets its deadline's error at once. A grant that arrives later is released.",
		},
		{
			Number:  3,
			Trigger: "The caller cancels while go-redis reads the reply, which does not end the read.",
			Right:   "The caller returns at once. The abandoned command is undone.",
		},
		{
			Number:  4,
			Trigger: "The caller's context has ended, and the cleanup uses the same context.",
			Right:   "The cleanup has its own time limit. It is sent although the caller's context has ended.",
		},
		{
			Number:  5,
			Trigger: "The network delivers a SET after its client has given up and has already cleaned up.",
			Right:   "The lock is released when the reply arrives.",
			Kind:    Limit,
			Guard: "If that reply is lost, too, the key is locked without a holder until its TTL ends, and no renewal extends it. Mutual " +
				"exclusion still holds. Choose a TTL that you can wait for.",
		},
		{
			Number:  6,
			Trigger: "The reply takes long, and the validity is counted from its arrival.",
			Right:   "Validity counts from before the command was sent, less a margin for clock drift. A lease that has ended on arrival is not granted.",
		},
		{
			Number:  7,
			Trigger: "Redlock: a minority of several independent masters stays locked, or two of them share a host.",
			Right:   "The lock is released on all nodes, including those that failed. No node counts twice.",
		},
	}
}
