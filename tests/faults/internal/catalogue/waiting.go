package catalogue

func waitingRows() []Row {
	return []Row{
		{
			Number: 27,
			Trigger: "The message that wakes a waiter is lost: the release comes before the subscription is active, the connection breaks, a " +
				"failover loses the message, or the key expires, which sends none.",
			Right: "The waiter checks again when its subscription is active, and about once a second.",
		},
		{
			Number:  28,
			Trigger: "Each waiter subscribes on a connection of its own, or subscriptions leak.",
			Right:   "A process has one subscription. It has the channels of current waiters only. After any number of locks none is left.",
		},
		{
			Number:  29,
			Trigger: "Many callers fill the connection pool, and renewals wait behind them.",
			Right:   "Renewals do not wait behind callers, and a dead node does not delay renewals on other nodes.",
		},
		{
			Number:  30,
			Trigger: "A release wakes all waiters, or waiters poll.",
			Right:   "One waiter is served at a time, and waiters send nothing.",
		},
		{
			Number:  31,
			Trigger: "A waiter is never served, or the queue waits for a process that has died.",
			Right: "Within a process waiters are served in order of arrival. Processes take turns, and dead ones are skipped. Strict order across " +
				"processes is not promised.",
		},
		{
			Number:  32,
			Trigger: "Waiters, or the state of keys that were used once, grow without a bound.",
			Right: "The queue of one key and all queues together are bounded, and further waiters are refused at once (429, 503). An unused key " +
				"costs no memory.",
		},
		{
			Number:  33,
			Trigger: "A process evicts its state of a held key to make room for other keys.",
			Right:   "The state of a held key is never evicted, whatever the number of other keys.",
		},
		{
			Number:  34,
			Trigger: "Redis is down, and a caller with a short wait is delayed for long.",
			Right:   "A caller gets a result within its wait, or, if it does not wait, within the timeout of one command.",
		},
	}
}
