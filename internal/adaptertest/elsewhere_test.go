package adaptertest

// elsewhere are the scenarios of idempotent endpoints that are no rows of the
// table: those that another test tells, and those that cannot come about.
var elsewhere = []struct{ scenario, why string }{
	// Keys.
	{"a method in lower case", "routers of Gin and Echo know none; TestCovers of internal/httpattempt"},
	{"all forms of an Idempotency-Key field", "its parser has tests and a fuzzer in internal/keypart"},
	{"an unscoped key on an authenticated route is refused when it is registered", "nobody can tell: a key is a " +
		"function, a required argument, and all documentation has the joined form"},

	// Fingerprints.
	{"a new version of the fingerprint during an update", "there is one version; TestFingerprintStays of " +
		"internal/httpattempt sees that it does not change by accident"},
	{"a body that a middleware outside has read", "TestBodyReadOutside of internal/httpattempt; what Gin binds, of ginlock"},

	// Waiting.
	{"acquired after the request's context has ended", "internal/engine: the lock of an attempt is one of the lock's"},
	{"a wake-up message is lost", "internal/engine and internal/redisstore, for all waiters"},
	{"too many waiters of a key or in all", "internal/engine, for all waiters; the answers are in the table of refusals"},
	{"copies in one process share one read of the record", "internal/engine, and core"},

	// Answers.
	{"a HEAD request is replayed without its body", "a HEAD request is never idempotent by key: it may not be registered"},
	{"each call of a handler on its writer", "TestLikeNetHTTP of internal/httpattempt, beside net/http's own writer"},
	{"c.Writer.Size and c.Response().Size as without Idempotent", "TestSeenOutside of ginlock and echolock"},
	{"hooks before and after an answer, and errors of handlers that nobody renders", "ginlock and echolock, which have them"},
	{"a timeout inside the endpoint", "TestTimeoutInside of nethttplock: its 503 is the answer, and frees the key"},

	// Leases.
	{"SIGKILL before the begin, after it, inside the handler, after the commit, while sending", "a crash test of its " +
		"own, with processes; here an attempt dies by not being ended"},
	{"a handler that outlives ten leases, an error of one renewal, fences, a process that is stopped", "internal/engine " +
		"and core: an attempt's lock is renewed and fenced as any other"},
	{"renew, commit and abort of one that was overtaken", "core and internal/redisstore, beside a row of this table"},

	// Faults of Redis.
	{"the reply to a begin, an abort or an interrupt is lost", "internal/redisstore, by scripts that are sent again"},
	{"NOSCRIPT, READONLY, LOADING, MOVED, OOM, missing rights", "internal/redisstore, for all scripts"},
	{"a failover, and a clock that is wrong by seconds", "the model and the tests of internal/redisstore"},
	{"an eviction policy that loses records", "Check of core"},
	{"requests run without Redis", "refused when they are registered: the tests of registrations"},
	{"a record lives for ever", "all scenarios: when one is over, every key has its time to live"},
	{"a tombstone after the record", "there is none: WithRetention says for how long a key is known"},

	// Others.
	{"random schedules, at most one commit, all replays equal", "the model and the chaos test of the record"},
	{"gRPC", "a table of its own: its answers are no HTTP answers"},
}
