package otellock

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/reqlock/reqlock/core"
)

// Watch adds what the events of a Locker do not show: how many idempotent requests run although
// their client has gone, as core.Locker.AttemptsWithoutClient counts them when the metrics are
// collected. The views of a Locker count with it, so call Watch once for each Locker that New or
// NewQuorum of core has made. Several Lockers add up. Watch keeps the Locker in memory. It fails
// if the Locker is nil, or if the provider of the metrics refuses the callback.
func (i *Instrumentation) Watch(locks *core.Locker) error {
	if locks == nil {
		return errors.New("reqlock: otellock.Watch: the Locker is nil")
	}
	of := metric.WithAttributeSet(attribute.NewSet(operationOf(true)))
	_, err := i.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(i.instruments.attemptWithoutClient, int64(locks.AttemptsWithoutClient()), of) //nolint:contextcheck // it asks contexts of requests
		return nil
	}, i.instruments.attemptWithoutClient)
	if err != nil {
		return fmt.Errorf("reqlock: otellock.Watch: the callback cannot be registered: %w", err)
	}
	return nil
}
