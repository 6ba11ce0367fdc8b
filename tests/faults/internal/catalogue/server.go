package catalogue

func serverRows() []Row {
	return []Row{
		{
			Number:  16,
			Trigger: "The server restarts without its data.",
			Right:   "No call hangs, fencing numbers still rise, and a holder whose key is gone is notified.",
			Kind:    Loss,
			Guard: "All locks are lost at once, and a second client can be granted each of them. The first holder is notified at its next " +
				"renewal; a fencing number refuses its late writes; appendonly with appendfsync always loses no lock; NewQuorum keeps the lock " +
				"on a majority of servers, and a restarted server does not vote until old leases have ended.",
		},
		{
			Number:  17,
			Trigger: "A replica that lacks the lock becomes the master, or two masters serve at once.",
			Right:   "A holder whose lock the new master does not have is notified. All other holders continue.",
			Kind:    Loss,
			Guard: "Redis replicates after it has replied, so a lock can be lost with its master. The first holder is notified at its next " +
				"renewal, and at the latest at the end of its validity; a fencing number refuses its late writes; min-replicas-to-write bounds " +
				"a split; WithReplicas with all replicas grants no lock that they do not have.",
		},
		{
			Number:  18,
			Trigger: "WAIT reaches too few replicas after the key was taken.",
			Right:   "The key is released, and the caller gets an error.",
		},
		{
			Number:  19,
			Trigger: "The server replies READONLY, LOADING, MASTERDOWN, CLUSTERDOWN, TRYAGAIN or NOREPLICAS.",
			Right: "A caller that may wait retries within its wait. A caller that may not wait gets the error that Redis is unavailable (503), " +
				"never that the key is busy (409).",
		},
		{
			Number:  20,
			Trigger: "The server replies BUSY, OOM, MISCONF, NOPERM or NOAUTH.",
			Right: "BUSY is temporary. With the others new locks fail at once as a fault, and held locks are renewed and released as far as the " +
				"server permits. Check names the cause.",
		},
		{
			Number:  21,
			Trigger: "The counter of fencing numbers is lost, or Lua rounds it.",
			Right:   "Numbers still rise, and are exact.",
		},
		{
			Number:  22,
			Trigger: "The server has lost the scripts, or refuses EVALSHA.",
			Right:   "An unknown script is sent once in full. A refusal is reported with its cause.",
		},
		{
			Number:  23,
			Trigger: "A cluster replies MOVED, ASK or CROSSSLOT, or a script is routed to a replica.",
			Right:   "All keys of a lock share a slot, redirections are followed, and a client that sends commands to replicas is refused.",
		},
		{
			Number:  24,
			Trigger: "The server evicts a lock because memory is short. A lock has a short TTL, so volatile-ttl evicts it before keys with a longer one.",
			Right:   "Check warns of the policy, and the holder is notified at its next renewal.",
			Kind:    Loss,
			Guard: "The lock is lost, and a second client can be granted it: run Redis with maxmemory-policy noeviction. A fencing number refuses " +
				"late writes.",
		},
		{
			Number:  25,
			Trigger: "The state of a lock is read from a replica that lags.",
			Right:   "Only masters are read, and a client that reads from replicas is refused.",
		},
		{
			Number:  26,
			Trigger: "An operator deletes the key, empties the server, or sets a value of another type.",
			Right:   "The holder is notified. The lock does not panic, and changes no foreign value.",
			Kind:    Loss,
			Guard: "A deleted lock can be granted to a second client. The first holder is notified at its next renewal; a fencing number refuses " +
				"its late writes.",
		},
	}
}
