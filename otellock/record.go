package otellock

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/reqlock/reqlock/core"
)

// record adds an event to the metrics.
func (i *Instrumentation) record(e core.Event) {
	m, s, ctx := &i.instruments, i.series.of(e), e.Context()
	if e.Queued {
		m.requestWaiting.Add(ctx, -1, s.plain.add...)
	}
	switch e.Kind {
	case core.Acquired:
		if e.Idempotent && !s.zeroed.Load() && s.zeroed.CompareAndSwap(false, true) { // the name may be that of a route, which no Registered has
			recordZero(ctx, m, s, true)
		}
		i.recordAcquire(ctx, s, e)
		m.leaseActive.Add(ctx, 1, s.plain.add...)
		count(ctx, m.leaseGrants, s, GrantKey.String(e.Grant.String()), "")
	case core.Refused, core.Replayed:
		i.recordAcquire(ctx, s, e)
	case core.Waiting:
		m.requestWaiting.Add(ctx, 1, s.plain.add...)
	case core.Released:
		m.leaseActive.Add(ctx, -1, s.plain.add...)
		lost := detail{what: LostKey.Bool(causeOf(e.Err) != "")}
		m.holdDuration.Record(ctx, e.Held.Seconds(), s.with(lost).record...)
		if e.Ending == core.EndAbort || e.Ending == core.EndUnknown {
			countEnding(ctx, m, s, e)
		}
	case core.Committed:
		if !e.Repeated { // the attempt was counted with its failure
			countEnding(ctx, m, s, e)
		}
	case core.Renewed:
		count(ctx, m.leaseRenewals, s, attribute.KeyValue{}, failureOf(e.Err))
	case core.Lost:
		count(ctx, m.leaseLosses, s, CauseKey.String(causeOf(e.Err)), "")
	case core.HeldLong:
		if !e.Repeated {
			m.leaseOverruns.Add(ctx, 1, s.plain.add...)
		}
	case core.Restored:
		m.attemptRestorations.Add(ctx, 1, s.plain.add...)
	case core.OutcomeUnknown:
		m.attemptUnknown.Add(ctx, 1, s.plain.add...)
	case core.Searched:
		m.outcomeOpen.Record(ctx, int64(e.Open))
	case core.Unlocked:
		m.requestUnlocked.Add(ctx, 1, s.plain.add...)
	case core.OperatorResolved:
		count(ctx, m.operatorChanges, s, ChangeKey.String(changeResolved), failureOf(e.Err))
	case core.OperatorRevoked:
		count(ctx, m.operatorChanges, s, ChangeKey.String(changeRevoked), failureOf(e.Err))
	case core.OperatorFreed:
		count(ctx, m.operatorChanges, s, ChangeKey.String(changeFreed), failureOf(e.Err))
	case core.Registered:
		recordZero(ctx, m, s, e.Idempotent)
	default:
	}
}

// recordOutage adds the begin or the end of an outage to the metrics.
func (i *Instrumentation) recordOutage(e core.Event) {
	if e.Kind == core.Recovered {
		i.instruments.outageActive.Add(e.Context(), -1)
		return
	}
	i.instruments.outageStarts.Add(e.Context(), 1)
	i.instruments.outageActive.Add(e.Context(), 1)
}

// recordZero begins the counters that are alerted on with 0, so that a dashboard shows that nothing has
// happened, and an increase is one from the first event on.
func recordZero(ctx context.Context, m *instruments, s *series, idempotent bool) {
	m.outageStarts.Add(ctx, 0)
	m.outageActive.Add(ctx, 0)
	m.leaseLosses.Add(ctx, 0, s.with(detail{what: CauseKey.String(causeLost)}).add...)
	if idempotent {
		m.attemptUnknown.Add(ctx, 0, s.plain.add...)
		m.attemptRestorations.Add(ctx, 0, s.plain.add...)
	}
}

// recordAcquire adds the end of a request for a lock to the metrics.
func (i *Instrumentation) recordAcquire(ctx context.Context, s *series, e core.Event) {
	code, failure := outcomeOf(e)
	with := s.with(detail{what: OutcomeKey.String(code), failure: failure})
	i.instruments.acquireDuration.Record(ctx, e.Waited.Seconds(), with.record...)
}

// countEnding counts the end of an attempt.
func countEnding(ctx context.Context, m *instruments, s *series, e core.Event) {
	count(ctx, m.attemptEndings, s, EndingKey.String(e.Ending.String()), endingFailureOf(e))
}

// count adds one to a counter.
func count(ctx context.Context, counter metric.Int64Counter, s *series, what attribute.KeyValue, failure string) {
	counter.Add(ctx, 1, s.with(detail{what, failure}).add...)
}
