// Package otellock turns the events of a Locker into metrics and spans of OpenTelemetry:
//
//	instruments, err := otellock.New()
//	if err != nil {
//		return err
//	}
//	locks, err := core.New(rdb, core.WithObserver(instruments.Observe))
//	if err != nil {
//		return err
//	}
//	err = instruments.Watch(locks) // for one of the metrics
//
// New uses the global providers of package otel, also if the program sets them later. It is a
// module of its own, so that reqlock itself needs no OpenTelemetry:
//
//	go get github.com/reqlock/reqlock/otellock
//
// # Metrics
//
// Each instrument has the attribute reqlock.operation, which is "lock", or "attempt" for an
// idempotent request; reqlock.lock.shared, which is true for a shared lock and absent for any
// other; and reqlock.lock.name, the name of the event, if there is one: that of Named of a
// core.Key, of core.WithName, or of the route of an idempotent request. See core.Event. Some
// instruments have one more attribute:
//
//	instrument                      kind             unit        more attributes
//	reqlock.acquire.duration        histogram        s           reqlock.outcome, error.type
//	reqlock.hold.duration           histogram        s           reqlock.lost
//	reqlock.lease.active            up-down counter  {lease}
//	reqlock.request.waiting         up-down counter  {request}
//	reqlock.lease.grants            counter          {lease}     reqlock.grant
//	reqlock.lease.losses            counter          {lease}     reqlock.cause
//	reqlock.lease.renewals          counter          {renewal}   error.type
//	reqlock.lease.overruns          counter          {lease}
//	reqlock.attempt.endings         counter          {attempt}   reqlock.ending, error.type
//	reqlock.attempt.restorations    counter          {attempt}
//	reqlock.attempt.unknown         counter          {report}
//	reqlock.attempt.without_client  up-down counter  {attempt}
//	reqlock.request.unlocked        counter          {request}
//	reqlock.commit.open             gauge            {commit}
//	reqlock.commit.age              gauge            s
//	reqlock.outcome.open            gauge            {outcome}
//
// reqlock.outcome.open has no attribute. It exists in a process that searches for unknown outcomes
// (core.WithUnknownSearch), and is 0 after that: so take the highest value of all processes. If several
// Lockers search, each needs an Instrumentation of its own.
//
// reqlock.attempt.without_client counts the idempotent requests that run although their client has
// gone. It and the gauges of commits have no name, and need Instrumentation.Watch.
//
// reqlock.outcome is "acquired", "replayed" for a copy that got the stored answer, or the code
// of core.RefusalOf, such as "busy". error.type is there if the refusal has an HTTP status of
// 500 or more, and for a renewal and an ending that Redis did not confirm. The comments of the
// constants say which values the other attributes have.
//
// The instruments count keys: a request for three keys that it gets is three leases. A request
// that runs without its lock (core.WithFailOpen) is counted in reqlock.acquire.duration with
// the reqlock.outcome "unavailable", too. The up-down counters return to zero when nobody holds a
// lease or waits. A lease that is lost stays active until its holder releases it.
//
// No attribute of a metric has a key, a digest, a token, or a text of an error or of a client.
// A program has few names. After 512 names, the next ones are counted as "_other".
//
// # Spans
//
// A request that had to wait, or that was refused, gets a span "reqlock.acquire", from its
// arrival to the end of its wait. The span is a child of the span in the request's context. If
// there is no such span, or if it is not sampled, there is no span: otellock begins no trace.
// The span has the attributes of reqlock.acquire.duration, reqlock.grant, reqlock.key.digest,
// which is the digest of core.EventKey and equal for equal keys, and reqlock.process, with which
// the tokens of the process in Redis begin.
//
// With core.WithReference(otellock.Reference), each copy of an idempotent request has such a span, also one
// that gets its answer at once, with a link to the span of the first request. Another reference than a
// traceparent is the attribute reqlock.first instead.
//
// WithSpans selects other acquisitions. WithHoldSpans adds a span "reqlock.hold" for each
// lease, from its grant to its release.
//
// The log of core.WithLogger stays beside it: the lines have the context of the request, so a
// handler such as the bridge otelslog adds the trace.
//
// The page [observability] describes the events, and says what to alert on.
//
// [observability]: https://github.com/reqlock/reqlock/blob/main/docs/observability.md
package otellock
