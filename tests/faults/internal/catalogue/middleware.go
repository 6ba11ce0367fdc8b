package catalogue

func middlewareRows() []Row {
	return []Row{
		{
			Number:  35,
			Trigger: "The handler panics, ends its goroutine, or aborts with http.ErrAbortHandler.",
			Right:   "The lock is freed, and the panic goes on with the same value.",
		},
		{
			Number:  36,
			Trigger: "The client disconnects while its handler runs.",
			Right:   "The lock is kept until the handler returns, and released then.",
		},
		{
			Number:  37,
			Trigger: "The handler starts a goroutine that outlives it, or keeps a context that its framework uses again.",
			Right:   "The lock ends with the handler, and the context that a goroutine was given ends with it.",
			Kind:    Limit,
			Guard: "Work that goes on after the handler has returned is not locked. Its context has ended, by which it can tell; " +
				"work that must outlive a request takes a lock of its own with Lock or Do.",
		},
		{
			Number:  38,
			Trigger: "A wrapper around the response hides what a handler needs: Flusher, Hijacker, ReaderFrom.",
			Right:   "The lock alone never wraps the writer. Idempotent passes flushes and hijacks on, and does not keep such an answer.",
		},
		{
			Number:  39,
			Trigger: "A handler streams for long, sends events, or takes the connection over.",
			Right:   "The lock is held until the handler returns, and a longest hold can be set.",
		},
		{
			Number:  40,
			Trigger: "A timeout middleware answers while the handler still runs.",
			Right:   "With the timeout outside, the lock stays until the handler has returned.",
			Kind:    Limit,
			Guard: "With http.TimeoutHandler inside, the handler that the lock sees has returned while the real one runs on: " +
				"the lock is free then. Put the timeout outside, as the documentation of each adapter says.",
		},
		{
			Number:  41,
			Trigger: "The service shuts down while locks are held and waited for.",
			Right:   "Newcomers and waiters are refused, holders may finish until the given context ends, and a second Close does no harm.",
		},
		{
			Number:  42,
			Trigger: "Redis is down when a request comes.",
			Right:   "503 with Retry-After. Running without the lock is a choice that must be made, is told to the observer, and does not exist for idempotent requests.",
		},
		{
			Number:  43,
			Trigger: "gRPC: streams, metadata, and codes that clients retry on.",
			Right:   "A stream is locked to its end, and each refusal has the code that says what to do.",
		},
		{
			Number:  44,
			Trigger: "A handler takes the key again that it already holds, or two requests take two keys in opposite order.",
			Right:   "The inner lock is a part of the outer one. Several keys are taken in one order, each once.",
		},
	}
}
