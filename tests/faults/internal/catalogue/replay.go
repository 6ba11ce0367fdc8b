package catalogue

func replayRows() []Row {
	return []Row{
		{
			Number:  45,
			Trigger: "A process dies in the middle of an idempotent request.",
			Right: "Its key is free after its lease. The effect of the request is unknown, so copies are refused with outcome_unknown, unless the " +
				"application has chosen to run again.",
		},
		{
			Number:  46,
			Trigger: "An answer is stored after the lease was lost.",
			Right:   "It is stored only if no other attempt has begun. It never replaces the answer of another attempt.",
		},
		{
			Number:  47,
			Trigger: "The handler has succeeded, and its answer cannot be stored.",
			Right: "The client gets the answer, and the observer an event. The process stores the answer later, and until then its copies get it. " +
				"To other processes the outcome is unknown. A copy runs only in another process, if Redis has lost the record.",
		},
		{
			Number:  48,
			Trigger: "An answer is too big to be stored.",
			Right:   "The client gets the full answer, and a copy gets the error that the request is done: it never runs twice.",
		},
		{
			Number:  49,
			Trigger: "A key is used again with another body, by another user, or at the same time.",
			Right:   "Another payload is refused (422), another user's key is a different key, and a concurrent copy is refused (409) or waits.",
		},
		{
			Number: 50,
			Trigger: "The answer is a server error, a panic, a timeout or the refusal of a lock inside, or has headers of one connection: cookies, " +
				"Connection, Date, trailers.",
			Right: "After a panic, a timeout, and each status that does not say what became of the request, the outcome is unknown, unless the " +
				"application says that its effects roll back. A 503, or a refusal with which the request ends, frees the key. Such headers are never replayed.",
		},
	}
}
