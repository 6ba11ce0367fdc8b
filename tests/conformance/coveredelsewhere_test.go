package conformance

// coveredElsewhere are the failures of idempotent endpoints that have no row in the table:
// another test covers them, or they cannot happen.
var coveredElsewhere = []struct{ scenario, why string }{
	// Keys.
	{"a method in lower case", "the routers of Gin and Echo do not have it; TestMethodsMatchInAnyCase of internal/adapter/httpattempt"},
	{"all forms of an Idempotency-Key field", "its parser has tests and a fuzzer in internal/adapter/keypart"},
	{"an unscoped key on an authenticated route is refused when it is registered", "the registration cannot detect it: " +
		"a key is a function, a required argument, and all documentation has the joined form"},

	// Fingerprints.
	{"a new version of the fingerprint during an update", "there is one version; TestFingerprintsNeverChange of " +
		"internal/adapter/httpattempt fails if it changes"},
	{"a form that an outer middleware has parsed", "TestBodyReadOutsideIsNotEmpty of internal/adapter/httpattempt; for bodies that Gin binds, ginlock"},

	// Waiting.
	{"acquired after the request's context has ended", "internal/engine: such a grant is aborted"},
	{"a wake-up message is lost", "internal/engine and tests/waiting, for all waiters"},
	{"too many waiters of a key or in all", "internal/engine, for all waiters"},
	{"copies in one process share one read of the record", "internal/engine, with a record that counts reads"},

	// Answers.
	{"a HEAD request is replayed without its body", "HEAD cannot be registered as idempotent by key"},
	{"each call of a handler on its writer", "TestRecorderBehavesLikeNetHTTP of internal/adapter/httpattempt, beside net/http's own writer"},
	{"c.Writer.Size and c.Response().Size as without Idempotent", "TestOuterMiddlewareSeesTheSameAnswer of ginlock and echolock"},
	{"hooks before and after an answer, and errors of handlers that are not rendered", "ginlock and echolock, which have them"},
	{"a timeout inside the endpoint", "TestTimeoutInsideIdempotentFreesTheKey of nethttplock: its 503 is the answer, and frees the key"},

	// Leases.
	{"SIGKILL before the begin, after it, inside the handler, after the commit, while sending", "tests/crash, " +
		"with processes; in this package an attempt never ends instead"},
	{"a handler that outlives its TTL many times, an error of one renewal, fences", "internal/engine: the lock of an " +
		"attempt is renewed and fenced as any other"},
	{"a process that is stopped for longer than its lease", "tests/waiting, for all leases; the states that its commit " +
		"then finds are rows of this table"},
	{"renew, commit and abort after another attempt has begun", "internal/redis/redisstore, beside a row of this table"},

	// Faults of Redis.
	{"the reply to a begin or an abort is lost", "internal/redis/redisstore, where the reply to each script is dropped"},
	{"NOSCRIPT, READONLY, LOADING, MOVED, OOM, missing rights", "internal/redis/redisstore, for all scripts"},
	{"a failover, a wrong clock, an eviction policy that loses records", "each has the effect of a deleted record, " +
		"which is a row of this table"},
	{"requests run without Redis", "refused when they are registered: the tests of registrations"},
	{"a record without a TTL", "each scenario checks at its end that every key has a TTL"},
	{"a tombstone after the record", "there is none: WithRetention states how long a key is known"},

	// Others.
	{"random schedules: at most one stored answer, and all copies equal", "tests/crash, with processes that " +
		"are killed at random"},
	{"gRPC", "another table in this package, since its answers differ from HTTP's"},
}
