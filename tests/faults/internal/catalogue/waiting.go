package catalogue

func waitingRows() []Row {
	return []Row{
		{
			Number: 27,
			Trigger: "The message that wakes a waiter is lost: the release comes before the subscription stands, the connection breaks, " +
				"a failover swallows it, or the key expires, which says nothing.",
			Right: "The waiter asks once more when its subscription stands, and looks by itself about once a second.",
		},
		{
			Number:  28,
			Trigger: "Each waiter subscribes on a connection of its own, or subscriptions stay behind.",
			Right:   "A process has one subscription, whose channels come and go with those who wait. After any number of locks none is left.",
		},
		{
			Number:  29,
			Trigger: "Many callers fill the connection pool, and renewals wait behind them.",
			Right:   "Renewals do not stand in line behind callers, and a node that is dead does not cost other nodes' locks their leases.",
		},
		{
			Number:  30,
			Trigger: "A release wakes everybody, or waiters poll.",
			Right:   "One waiter is served at a time, and those who wait send nothing.",
		},
		{
			Number:  31,
			Trigger: "Somebody is never served, or the line waits for a member that has died.",
			Right: "Order of arrival within a process, turns between processes, and the dead are passed over. " +
				"Strict order across processes is not promised.",
		},
		{
			Number:  32,
			Trigger: "Waiters, or the memory of keys once used, grow without bound.",
			Right:   "A line for one key and all lines together are bounded, and those beyond are refused at once (429, 503). A key that nobody uses costs nothing.",
		},
		{
			Number:  33,
			Trigger: "What a process remembers of a key that is held makes room for other keys.",
			Right:   "A held key is never forgotten, however many others come and go.",
		},
		{
			Number:  34,
			Trigger: "Redis is down, and a caller with a short wait is kept for long.",
			Right:   "A caller is answered within its wait, or within the time limit of one command where it does not wait.",
		},
	}
}
