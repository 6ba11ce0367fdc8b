package catalogue

func sharedRows() []Row {
	return []Row{
		{
			Number:  52,
			Trigger: "More callers than there are permits ask at the same time, or readers and writers do.",
			Right:   "There are never more leases than the limit, and none beside an exclusive lease or the lock of another client.",
		},
		{
			Number:  53,
			Trigger: "A holder of a permit or of a shared lease dies or is stopped, or its lease ends early.",
			Right:   "It costs one permit until the TTL ends. All other leases continue, and a late renewal never brings the lease back.",
		},
		{
			Number:  54,
			Trigger: "Readers come without a pause while a writer waits, or writers while a reader waits.",
			Right: "Each caller that waits is served: at most a turn of each process and of each kind of lease comes before it. A caller that " +
				"may not wait does not pass the head of the queue.",
		},
		{
			Number:  55,
			Trigger: "The first waiter keeps shared leases behind it waiting, and gives up, dies or is stopped.",
			Right:   "A waiter that gives up lets those behind it go at once. One that is gone delays them by a claim and 1.5 s at most.",
		},
		{
			Number:  56,
			Trigger: "Processes have two limits for one key, as during a deploy.",
			Right:   "Each lease is granted within its own limit, and no lease is revoked.",
		},
	}
}
