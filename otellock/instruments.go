package otellock

import (
	"errors"

	"go.opentelemetry.io/otel/metric"
)

// acquireBounds and holdBounds are the bounds of the histograms' buckets, in seconds. A lock
// that is free takes one round trip to Redis. A hold is as long as a handler, or a job.
var (
	acquireBounds = [...]float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	holdBounds    = [...]float64{.005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300}
)

// instruments are the metrics of a Locker.
type instruments struct {
	acquireDuration, holdDuration metric.Float64Histogram
	leaseActive, requestWaiting   metric.Int64UpDownCounter

	leaseGrants, leaseLosses, leaseRenewals, leaseOverruns metric.Int64Counter
	attemptEndings, attemptRestorations, attemptUnknown    metric.Int64Counter
	requestUnlocked, outageStarts, operatorChanges         metric.Int64Counter
	outageActive                                           metric.Int64UpDownCounter
	outcomeOpen                                            metric.Int64Gauge

	// Of Watch.
	attemptWithoutClient metric.Int64ObservableUpDownCounter
	commitOpen           metric.Int64ObservableGauge
	commitAge            metric.Float64ObservableGauge
}

// newInstruments makes the instruments.
func newInstruments(meter metric.Meter) (instruments, error) {
	var errs []error
	histogram := func(name, description string, bounds []float64) metric.Float64Histogram {
		made, err := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description),
			metric.WithExplicitBucketBoundaries(bounds...))
		errs = append(errs, err)
		return made
	}
	gauge := func(name, unit, description string) metric.Int64UpDownCounter {
		made, err := meter.Int64UpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
		errs = append(errs, err)
		return made
	}
	counter := func(name, unit, description string) metric.Int64Counter {
		made, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
		errs = append(errs, err)
		return made
	}
	made := instruments{
		acquireDuration: histogram("reqlock.acquire.duration",
			"Time from a request for a lock to its lease, its refusal or a stored answer.", acquireBounds[:]),
		holdDuration:        histogram("reqlock.hold.duration", "Time from the grant of a lease to its release.", holdBounds[:]),
		leaseActive:         gauge("reqlock.lease.active", "{lease}", "Leases that are granted and not released."),
		requestWaiting:      gauge("reqlock.request.waiting", "{request}", "Requests that wait for a lock."),
		leaseGrants:         counter("reqlock.lease.grants", "{lease}", "Leases that were granted."),
		leaseLosses:         counter("reqlock.lease.losses", "{lease}", "Leases that ended before their release."),
		leaseRenewals:       counter("reqlock.lease.renewals", "{renewal}", "Renewals of leases, also those that failed."),
		leaseOverruns:       counter("reqlock.lease.overruns", "{lease}", "Leases that were held for more than three times their TTL."),
		attemptEndings:      counter("reqlock.attempt.endings", "{attempt}", "Idempotent requests that ran and ended."),
		attemptRestorations: counter("reqlock.attempt.restorations", "{attempt}", "Idempotent requests whose record Redis lost while they ran."),
		attemptUnknown:      counter("reqlock.attempt.unknown", "{report}", "Reports that the outcome of an idempotent request is unknown."),
		outageStarts:        counter("reqlock.outage.starts", "{outage}", "Outages of a server of Redis that began."),
		outageActive:        gauge("reqlock.outage.active", "{server}", "Servers of Redis that fail or refuse all commands now."),
		requestUnlocked:     counter("reqlock.request.unlocked", "{request}", "Requests that ran without their lock."),
		operatorChanges:     counter("reqlock.operator.changes", "{change}", "Locks and outcomes that an operator has changed, or has perhaps changed."),
	}
	var err error
	made.outcomeOpen, err = meter.Int64Gauge("reqlock.outcome.open", metric.WithUnit("{outcome}"),
		metric.WithDescription("Unknown outcomes that the last search of this process has counted."))
	errs = append(errs, err)
	made.attemptWithoutClient, err = meter.Int64ObservableUpDownCounter("reqlock.attempt.without_client",
		metric.WithUnit("{attempt}"), metric.WithDescription("Idempotent requests that run although their client has gone."))
	errs = append(errs, err)
	made.commitOpen, err = meter.Int64ObservableGauge("reqlock.commit.open", metric.WithUnit("{commit}"),
		metric.WithDescription("Answers that Redis has not accepted, and that are sent again."))
	errs = append(errs, err)
	made.commitAge, err = meter.Float64ObservableGauge("reqlock.commit.age", metric.WithUnit("s"),
		metric.WithDescription("For how long the oldest of these answers has been sent again."))
	return made, errors.Join(append(errs, err)...)
}
