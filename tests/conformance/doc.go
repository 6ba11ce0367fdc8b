// Package conformance checks that all adapters behave alike: its tables of cases run over net/http,
// Gin, Echo, Fiber, gRPC and Connect, with the same core, a real redis-server and real connections. README.md
// says what is proved, and how to add a case.
//
// This package has no code but its tests.
package conformance
