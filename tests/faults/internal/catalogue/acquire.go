package catalogue

func acquireRows() []Row {
	return []Row{
		{
			Number:  1,
			Trigger: "The server executes the command that takes the key, and its reply is lost. The client sends it again.",
			Right:   "The second send finds our own token and is granted the same lease. If no reply comes at all, the key is freed in the background.",
		},
		{
			Number:  2,
			Trigger: "The caller's deadline passes while the command is on its way.",
			Right:   "The caller gets its deadline's error at once. A grant that comes later is given back, not kept.",
		},
		{
			Number:  3,
			Trigger: "The caller cancels while the client reads the reply, which go-redis does not notice.",
			Right:   "The caller returns at once all the same, and what it abandoned is undone.",
		},
		{
			Number:  4,
			Trigger: "The cleanup runs with the context whose end is the reason for it.",
			Right:   "Cleanup has a time limit of its own and is sent although the caller's context has ended.",
		},
		{
			Number:  5,
			Trigger: "The network delivers a SET after its sender has given up and has already cleaned up.",
			Right:   "It is undone as soon as its reply is seen.",
			Kind:    Limit,
			Guard: "If that reply is lost too, the key stays taken for nobody until its TTL, which nothing raises. " +
				"Exclusion is not touched; choose a TTL that you can wait for.",
		},
		{
			Number:  6,
			Trigger: "The reply takes long, and validity is counted from its arrival.",
			Right:   "Validity counts from before the sending, less a margin for drift. A lease that is over on arrival is not handed out.",
		},
		{
			Number:  7,
			Trigger: "Redlock: a minority of several independent masters stays locked, or two of them share a host.",
			Right:   "All nodes are released, those that failed included, and no node counts twice.",
		},
	}
}
