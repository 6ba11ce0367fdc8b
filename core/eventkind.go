package core

// An EventKind is the kind of an Event.
type EventKind int

// The kinds of event. Later versions may add kinds.
const (
	// Acquired: a lease was granted.
	Acquired EventKind = iota + 1
	// Waiting: a request waits in the queue, because its key is locked.
	Waiting
	// Refused: a request did not get its lock; Err says why. If its key could not be read,
	// Err names the key, and Key is empty.
	Refused
	// Released: a holder released its lease. Err is set if Redis did not confirm the
	// release: then the key may stay locked until its TTL ends.
	Released
	// Renewed: a lease was renewed. If the renewal failed, Err says why. Renewals are
	// retried until the lease ends, several times a second: see Repeated.
	Renewed
	// Lost: a lease ended before its holder released it. Err is the cause of its context.
	Lost
	// HeldLong: a lease has been held for more than three times its TTL. While it is held,
	// the event is repeated, each time after twice the time: see Repeated. The reason may
	// be that its holder never releases it: see WithCaller.
	HeldLong
	// Replayed: a request got the stored answer of an earlier attempt. The request may
	// have waited for that attempt.
	Replayed
	// Committed: an attempt was ended by Commit or Done. Err is set if its answer was not
	// stored: it is ErrUnavailable if Redis did not accept the answer, or it was not sealed, so that the outcome
	// is unknown to later requests, or ErrLost if another attempt had begun, or an operator
	// had resolved the request. After ErrUnavailable the commit may go on: see
	// Attempt.Commit. At its end there is one more Committed, with Repeated. Without Err, it
	// ends the unknown outcome.
	Committed
	// Restored: Redis lost the record of an attempt while the attempt ran, by eviction or
	// in a failover. The record was stored again at the end of the attempt. Another
	// request may have run in between.
	Restored
	// Unlocked: a request runs without its lock, because Redis is unavailable
	// and WithFailOpen is on.
	Unlocked
	// Warned: Check has found that Redis may lose locks, New that its client has another
	// Locker, or an adapter that it was not set up as meant (see adapter.Warn). Or a request
	// was refused because of a mistake of the program, such as ErrUpgrade: once for each
	// mistake. Or a sealed answer does not open: see WithSealer. Or an observer has panicked or missed events (see WithObserver), or a server has
	// sent a message that cannot be read. Err says why, and what to do. There is no Key.
	Warned
	// OutcomeUnknown: it is unknown whether an idempotent request took effect, and an
	// operator has to find out: see Locker.ReadRecord and Resolve. Key.EndpointKey is the key
	// that they take. There is at least one such event for each unknown outcome: when an attempt
	// is ended by Unknown; when Redis did not accept a commit, which may go on, and once more if
	// it is given up later; when a request finds that an earlier attempt died or ended unknown,
	// in any process; when a search finds that (see WithUnknownSearch); and before each run that
	// WithRerunUnknown allows after that. Err says which of these it is: for a commit it is also ErrUnavailable, and the adapters name what
	// the handler did, such as a panic or its status. The record in Redis notes the report of
	// an attempt that Unknown ended, of a copy and of a search, so that later copies and searches do
	// not report it again.
	OutcomeUnknown
	// Closing: Close has begun and waits for holders. Holds says how many. Key, Held and
	// Caller describe the oldest lease.
	Closing
	// Outage: a server began to fail or refuse the commands of all requests, because it cannot be
	// reached, does not reply, or does not accept this client. Server says which one, and Err why,
	// and what to do. The requests that it refuses have a Refused each.
	Outage
	// Recovered: an Outage is over. Lasted, Refused and Unlocked describe it.
	Recovered
	// Registered: the locks of a middleware, or of a view with WithName, have this Name, and
	// Idempotent says for what. It comes when the middleware or the view is made, so that a metric
	// can begin with 0. A middleware whose key may have several names sends one event for each. The
	// name of a route is not known then: it comes with the first request.
	Registered
	// Searched: a search for unknown outcomes has ended: see WithUnknownSearch. Open says how many
	// there are now, and Took how long the search took. If this process searches no longer, there
	// is one more such event without Open and Took: another process may search.
	Searched
	// OperatorResolved: an operator has ended an unknown outcome by Resolve. Change says who, why, and
	// what it was before. Err is set if it is unknown whether Redis has executed it. There is one
	// event for each call of an operator, and none for a call that surely has changed nothing.
	OperatorResolved
	// OperatorRevoked: the same, for leases that Revoke of package inspect has ended.
	OperatorRevoked
	// OperatorFreed: the same, for leases that FreeNow of package inspect has ended.
	OperatorFreed
	// HandedOver: a holder has ended its lease by Handover, and has a ticket for it. A Released follows.
	// If the ticket is accepted, there is an Acquired with GrantAccepted, in any process.
	HandedOver
)

// String returns the kind as one lower-case word.
func (k EventKind) String() string {
	switch k {
	case Acquired:
		return "acquired"
	case Waiting:
		return "waiting"
	case Refused:
		return "refused"
	case Released:
		return "released"
	case Renewed:
		return "renewed"
	case Lost:
		return "lost"
	case HeldLong:
		return "held_long"
	case Replayed:
		return "replayed"
	case Committed:
		return "committed"
	case Restored:
		return "restored"
	case Unlocked:
		return "unlocked"
	case Warned:
		return "warned"
	case OutcomeUnknown:
		return "outcome_unknown"
	case Closing:
		return "closing"
	case Outage:
		return "outage"
	case Recovered:
		return "recovered"
	case Registered:
		return "registered"
	case Searched:
		return "searched"
	case OperatorResolved:
		return "operator_resolved"
	case OperatorRevoked:
		return "operator_revoked"
	case OperatorFreed:
		return "operator_freed"
	case HandedOver:
		return "handed_over"
	default:
		return "unknown"
	}
}

// A Grant says how a holder got its lease.
type Grant int

// The ways in which a holder gets a lease.
const (
	// GrantFree: the key was free, and the first command took it.
	GrantFree Grant = iota + 1
	// GrantAwaited: the key was locked, and a later command took it.
	GrantAwaited
	// GrantPassed: the holder before, in the same process, passed its lease on. Redis kept the
	// key.
	GrantPassed
	// GrantHanded: another process handed the lock to this process and notified it.
	GrantHanded
	// GrantAccepted: the holder before handed its lease over by a ticket: see Locker.Accept.
	GrantAccepted
)

// String returns the grant as one lower-case word.
func (g Grant) String() string {
	switch g {
	case GrantFree:
		return "free"
	case GrantAwaited:
		return "awaited"
	case GrantPassed:
		return "passed"
	case GrantHanded:
		return "handed"
	case GrantAccepted:
		return "accepted"
	default:
		return "unknown"
	}
}
