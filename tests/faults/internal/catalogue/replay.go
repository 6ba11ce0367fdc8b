package catalogue

func replayRows() []Row {
	return []Row{
		{
			Number:  45,
			Trigger: "A process dies in the middle of an idempotent request.",
			Right: "Its key is free after its lease. Nobody can know what it has done, so copies are refused with outcome_unknown, " +
				"unless the application has chosen to run again.",
		},
		{
			Number:  46,
			Trigger: "An answer is stored after the lease was lost.",
			Right:   "It is stored only if nobody else has begun meanwhile; never over another attempt's.",
		},
		{
			Number:  47,
			Trigger: "The handler has succeeded, and its answer cannot be stored.",
			Right:   "The client gets the answer, the observer hears of it, and a copy does not run the handler again: its outcome is unknown.",
		},
		{
			Number:  48,
			Trigger: "An answer is too big to be kept.",
			Right:   "The client gets it whole, and a copy is told that the request is done: it never runs twice.",
		},
		{
			Number:  49,
			Trigger: "A key comes again with another body, from another user, or at the same time.",
			Right:   "Another payload is refused (422), another user's key is another key, and a copy at the same time is refused (409) or waits.",
		},
		{
			Number:  50,
			Trigger: "The answer is an error of the server or a panic, or carries headers that belong to one exchange: cookies, Connection, Date, trailers.",
			Right: "Errors that a retry can mend free the key, and so does a panic before an answer that would be kept. After such an answer " +
				"the outcome of a panic is unknown. Such headers are never replayed.",
		},
	}
}
