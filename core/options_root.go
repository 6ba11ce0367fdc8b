package core

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// byBoth are the functions that accept the options of this file.
const byBoth = "New or NewQuorum"

// WithPrefix sets the prefix of each key in Redis: "reqlock:" if not set. It may be empty. It
// may contain a complete hash tag such as "{app}:", which puts all locks in one cluster
// slot. reqlock and other clients exclude each other only if they use the same names. Only
// New and NewQuorum accept this option.
func WithPrefix(prefix string) Option {
	return rootOption{"WithPrefix", byBoth, func(r *root) error {
		r.prefix = prefix
		return nil
	}}
}

// WithCommandTimeout limits the time of each command to Redis, including one resend: 500 ms
// if not set, at least 1 ms, at most ten years. The limit of a command is never more than a
// quarter of the TTL. Only New and NewQuorum accept this option.
func WithCommandTimeout(d time.Duration) Option {
	return rootOption{"WithCommandTimeout", byBoth, func(r *root) error {
		r.commandTimeout = d
		return within("WithCommandTimeout", d, minCommandTimeout, maxTTL)
	}}
}

// WithFailFast sets after how long an outage of Redis new callers are refused at once with
// ErrUnavailable: 3 s if not set, at least 1 ms, or 0 to switch it off. The time counts from
// the first command without a reply since the last reply. A server that is loading its data,
// a replica and a cluster that is down reply that they serve no client, so that counts as no
// reply.
//
// Only the keys of that server are affected. In a cluster these are the keys of that master.
// In a quorum all keys are affected once a majority of the servers is missing. The Locker
// sends one probe at a time, at most half a second after the last one. The first reply ends
// the state.
//
// Callers that wait already keep their place. A lease still passes to the waiters of its own
// process, and new callers may join them. Exception: the lease cannot pass without a command.
// That is so if its holder has extended it or has WithMinHold, if less than a third of the
// caller's TTL is left, or if the caller wants a longer TTL, no renewal, or a fencing number that
// is not there. With
// WithFailOpen a caller still sends a command, and runs without the lock only after that has
// failed.
//
// Choose a time longer than a failover. Only New and NewQuorum accept this option.
func WithFailFast(after time.Duration) Option {
	return rootOption{"WithFailFast", byBoth, func(r *root) error {
		if after < 0 {
			return fmt.Errorf("reqlock: WithFailFast: %v is negative: 0 switches it off", after)
		}
		r.failFast = after
		return checkUnit("WithFailFast", after, 0)
	}}
}

// WithMaxTotalWaiters limits how many callers of this process wait for all keys together:
// 65536 if not set, at least 1. A caller above the limit gets ErrOverloaded at once. Only New
// and NewQuorum accept this option.
func WithMaxTotalWaiters(n int) Option {
	return rootOption{"WithMaxTotalWaiters", byBoth, func(r *root) error {
		if n < 1 {
			return fmt.Errorf("reqlock: WithMaxTotalWaiters: %d is below 1", n)
		}
		r.maxTotal = n
		return nil
	}}
}

// WithOpenCommits limits the number and the bytes of commits that go on after Attempt.Commit or
// Done has returned ErrUnavailable: 1024 and 64 MiB if not set. A commit for which there is no
// room is given up, so the outcome of its request stays unknown. A count of 0 switches them off.
// On a quorum the option has no effect. Only New and NewQuorum accept this option.
func WithOpenCommits(count, bytes int) Option {
	return rootOption{"WithOpenCommits", byBoth, func(r *root) error {
		if count < 0 || bytes < 0 {
			return fmt.Errorf("reqlock: WithOpenCommits: %d commits with %d bytes: both are at least 0", count, bytes)
		}
		r.openCommits, r.openBytes = count, bytes
		return nil
	}}
}

// WithLogger sets the logger for what the people who run the program should see: slog.Default() if
// not set, at the time of each event. A nil logger silences the Locker. These events are logged, all
// at the level WARN: Outage, Recovered, OutcomeUnknown, Lost, Restored, HeldLong, Warned and Closing,
// a Committed that ends an unknown outcome, and a fault of Redis that is not part of an outage, such
// as a key of another type. Of such faults one gets a line in ten seconds, and "more" counts the
// others. WithObserver does not change what is logged. For the other events, such as what an
// operator changes, see SlogObserver.
//
// Each line has the id of the process: see Event.Process. Keys appear as digests. The line of an
// unknown outcome, and that of the end of a commit that went on, also have endpoint_key, the digest
// of EndpointKey in full, for ReadRecord and Resolve.
//
// The logger gets the context of the event: see Event.Context. A logger that blocks, blocks as an
// observer does: see WithObserver. Only New and NewQuorum accept this option.
func WithLogger(logger *slog.Logger) Option {
	return rootOption{"WithLogger", byBoth, func(r *root) error {
		r.logger, r.silent = logger, logger == nil
		return nil
	}}
}

// WithObserver adds a function that receives each event: none if not set. Events of a request
// come on the goroutine of that request, so there may be several at once. Events of the Locker's
// own goroutines, such as Renewed and Lost, come on one goroutine, in order. So the function must
// be fast, must not block, and must be safe for concurrent use.
//
// If the function is too slow, 4096 events of the Locker's own goroutines wait. Lost,
// OutcomeUnknown and Warned have room for 4096 of their own each. Further events are dropped.
// At that place in the order, a Warned event says how many events of each kind were dropped.
//
// A panic of the function is caught, and changes nothing for the lock. The first one at each kind
// of event is reported to the other observers, as Warned, and to the logger of WithLogger, with the stack. The
// end of the goroutine, by runtime.Goexit or t.FailNow, counts as a panic. It cannot be caught, so
// it also releases the lock of a request that it ends. A panic of any other function that the
// program passes, such as the function of a key, or a handler, ends the lock and goes on.
//
// Only New and NewQuorum accept this option.
func WithObserver(observe func(Event)) Option {
	return rootOption{"WithObserver", byBoth, func(r *root) error {
		if observe == nil {
			return errors.New("reqlock: WithObserver: the function is nil")
		}
		r.observers = append(r.observers[:len(r.observers):len(r.observers)], &observer{observe: observe})
		return nil
	}}
}
