package catalogue

func middlewareRows() []Row {
	return []Row{
		{
			Number:  35,
			Trigger: "The handler panics, ends its goroutine, or aborts with http.ErrAbortHandler.",
			Right:   "The lock is released, and the panic continues with the same value.",
		},
		{
			Number:  36,
			Trigger: "The client disconnects while its handler runs.",
			Right:   "The lock is held until the handler returns, and released then.",
		},
		{
			Number:  37,
			Trigger: "The handler starts a goroutine that outlives it, or keeps a context that its framework reuses.",
			Right:   "The lock ends with the handler, and so does the context that the goroutine got.",
			Kind:    Limit,
			Guard: "Work that continues after the handler has returned is not locked. It can check its context, which has ended. Work that must " +
				"outlive a request takes its own lock with Lock or Do.",
		},
		{
			Number:  38,
			Trigger: "A wrapper around the response hides an interface that a handler needs: Flusher, Hijacker, ReaderFrom.",
			Right:   "The lock alone never wraps the writer. Idempotent supports flushes and hijacks, and does not store such an answer.",
		},
		{
			Number:  39,
			Trigger: "A handler streams for long, sends events, or hijacks the connection.",
			Right:   "The lock is held until the handler returns, and a maximum hold time can be set.",
		},
		{
			Number:  40,
			Trigger: "A timeout middleware answers while the handler still runs.",
			Right:   "If the timeout is outside, the lock is held until the handler has returned.",
			Kind:    Limit,
			Guard: "With http.TimeoutHandler inside, the handler that the lock calls has returned while the real one still runs: the lock is free " +
				"then. Put the timeout outside, as the documentation of each adapter says.",
		},
		{
			Number:  41,
			Trigger: "The service shuts down while locks are held and awaited.",
			Right:   "New callers and waiters are refused, holders may finish until the given context ends, and a second Close does no harm.",
		},
		{
			Number:  42,
			Trigger: "Redis is down when a request arrives.",
			Right: "503 with Retry-After. Running without the lock is an explicit option, is reported to the observer, and does not exist for " +
				"idempotent requests.",
		},
		{
			Number:  43,
			Trigger: "gRPC: streams, metadata, and codes that clients retry on.",
			Right:   "A stream is locked until its end, and each refusal has the code that tells the client what to do.",
		},
		{
			Number:  44,
			Trigger: "A handler takes a key that it already holds, or two requests take two keys in opposite order.",
			Right:   "The inner lock is a part of the outer one. Several keys are taken in one order, each once.",
		},
	}
}
