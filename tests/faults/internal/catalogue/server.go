package catalogue

func serverRows() []Row {
	return []Row{
		{
			Number:  16,
			Trigger: "The server restarts without its data.",
			Right:   "Nobody hangs, fencing numbers still rise, and a holder whose key is gone is told.",
			Kind:    Loss,
			Guard: "All locks are lost at once, and a second holder can get one. The first is told at its next renewal; " +
				"a fencing number refuses its late writes; appendonly with appendfsync always loses none; " +
				"NewQuorum keeps the lock on a majority of servers, and one that was restarted gives no votes until old leases are over.",
		},
		{
			Number:  17,
			Trigger: "A replica takes over that has not heard of the lock, or two masters serve at once.",
			Right:   "Who holds a lock that the new master does not know is told; all others go on.",
			Kind:    Loss,
			Guard: "Redis replicates after it has answered, so a lock can be lost with its master. The first holder is told at its next renewal and " +
				"at the latest at the end of its validity; a fencing number refuses its late writes; min-replicas-to-write bounds a split; " +
				"WithReplicas of all replicas grants nothing that they do not have.",
		},
		{
			Number:  18,
			Trigger: "WAIT reaches too few replicas after the key was taken.",
			Right:   "The key is released and the caller gets an error.",
		},
		{
			Number:  19,
			Trigger: "The server says READONLY, LOADING, MASTERDOWN, CLUSTERDOWN, TRYAGAIN or NOREPLICAS.",
			Right:   "Who may wait tries again within its wait. Who may not is told that Redis is unavailable (503), never that the key is busy (409).",
		},
		{
			Number:  20,
			Trigger: "The server says BUSY, OOM, MISCONF, NOPERM or NOAUTH.",
			Right: "BUSY passes. The others refuse new locks at once, as a fault; what is held can still be renewed and released where the server lets it. " +
				"Check names what is wrong.",
		},
		{
			Number:  21,
			Trigger: "The counter of fencing numbers is lost, or is rounded on its way through Lua.",
			Right:   "Numbers rise all the same, and are exact.",
		},
		{
			Number:  22,
			Trigger: "The server has forgotten the scripts, or refuses EVALSHA.",
			Right:   "A script that it does not know is sent whole, once. A refusal is named.",
		},
		{
			Number:  23,
			Trigger: "MOVED, ASK or CROSSSLOT in a cluster, or a script that is routed to a replica.",
			Right:   "All keys of a lock share a slot, redirections are followed, and a client that sends commands to replicas is refused.",
		},
		{
			Number:  24,
			Trigger: "The server evicts a lock for want of memory. A lock's TTL is short, so volatile-ttl takes it before keys that live longer.",
			Right:   "Check warns of the policy, and the holder is told at its next renewal.",
			Kind:    Loss,
			Guard:   "The lock is lost, and a second holder can get it: run Redis with maxmemory-policy noeviction. A fencing number refuses late writes.",
		},
		{
			Number:  25,
			Trigger: "The state of a lock is read from a replica, which is behind.",
			Right:   "It is only ever asked of a master, and a client that reads from replicas is refused.",
		},
		{
			Number:  26,
			Trigger: "Somebody deletes the key, empties the server, or puts a value of another type in its place.",
			Right:   "The holder is told. Nothing panics, and nothing that is not ours is changed.",
			Kind:    Loss,
			Guard:   "A deleted lock is free for a second holder. The first one is told at its next renewal; a fencing number refuses its late writes.",
		},
	}
}
