// Package oteltest tests otellock and the adapters together with what services use beside them: the
// instrumentation of each framework and of go-redis for OpenTelemetry, and a Prometheus with the alerts
// and the dashboard of otellock. It is a module of its own, so that reqlock needs none of these. README.md
// says what is proved.
//
// The package has only tests.
package oteltest
