package conformance

// elsewhere are the scenarios of idempotent endpoints that are no rows of the
// table: those that another test tells, and those that cannot come about.
var elsewhere = []struct{ scenario, why string }{
	// Keys.
	{"a method in lower case", "routers of Gin and Echo know none; TestCovers of internal/adapter/httpattempt"},
	{"all forms of an Idempotency-Key field", "its parser has tests and a fuzzer in internal/adapter/keypart"},
	{"an unscoped key on an authenticated route is refused when it is registered", "nobody can tell: a key is a " +
		"function, a required argument, and all documentation has the joined form"},

	// Fingerprints.
	{"a new version of the fingerprint during an update", "there is one version; TestFingerprintStays of " +
		"internal/adapter/httpattempt sees that it does not change by accident"},
	{"a body that a middleware outside has read", "TestBodyReadOutside of internal/adapter/httpattempt; what Gin binds, of ginlock"},

	// Waiting.
	{"acquired after the request's context has ended", "internal/engine: such a grant is aborted"},
	{"a wake-up message is lost", "internal/engine and tests/waiting, for all waiters"},
	{"too many waiters of a key or in all", "internal/engine, for all waiters"},
	{"copies in one process share one read of the record", "internal/engine, with a record that counts"},

	// Answers.
	{"a HEAD request is replayed without its body", "a HEAD request is never idempotent by key: it may not be registered"},
	{"each call of a handler on its writer", "TestLikeNetHTTP of internal/adapter/httpattempt, beside net/http's own writer"},
	{"c.Writer.Size and c.Response().Size as without Idempotent", "TestSeenOutside of ginlock and echolock"},
	{"hooks before and after an answer, and errors of handlers that nobody renders", "ginlock and echolock, which have them"},
	{"a timeout inside the endpoint", "TestTimeoutInside of nethttplock: its 503 is the answer, and frees the key"},

	// Leases.
	{"SIGKILL before the begin, after it, inside the handler, after the commit, while sending", "tests/crash, " +
		"with processes; here an attempt dies by not being ended"},
	{"a handler that outlives its lease many times, an error of one renewal, fences", "internal/engine: the lock of an " +
		"attempt is renewed and fenced as any other"},
	{"a process that stands still for longer than its lease", "tests/waiting, for all leases; what its commit " +
		"meets then is a row of this table"},
	{"renew, commit and abort of one that was overtaken", "internal/redis/redisstore, beside a row of this table"},

	// Faults of Redis.
	{"the reply to a begin or an abort is lost", "internal/redis/redisstore, where every script is cut and sent again"},
	{"NOSCRIPT, READONLY, LOADING, MOVED, OOM, missing rights", "internal/redis/redisstore, for all scripts"},
	{"a failover, a clock that is wrong, an eviction policy that loses records", "all of them come out as a record that " +
		"has vanished, which is a row of this table; how often they do is Redis's affair"},
	{"requests run without Redis", "refused when they are registered: the tests of registrations"},
	{"a record that lives for ever", "each scenario: when it is over, every key has a time to live"},
	{"a tombstone after the record", "there is none: WithRetention says for how long a key is known"},

	// Others.
	{"random schedules: at most one stored answer, and all copies equal", "tests/crash, with processes that " +
		"are killed at random"},
	{"gRPC", "a table of its own in this package, since its answers are none of HTTP's"},
}
