// Package conformance checks that all adapters behave alike: one table of cases runs over
// net/http, Gin, Echo and gRPC, with the same core, a real redis-server and real
// connections.
//
// A case describes a route independently of a framework: its locks, their keys, the
// middlewares around them and the handler. Each framework registers the route as its users
// do, sends requests over a connection, and reads the answers. The expected answer is the
// framework's form of a row of core.OutcomeOf.
//
// Idempotent endpoints have tables of their own, one for HTTP and one for unary gRPC calls,
// with all known ways in which they fail. The cases of the HTTP table use net/http's terms,
// which its frameworks share. coveredElsewhere lists what is tested in other packages.
//
// The fast tier runs the rows on single servers. The full tier runs them also on Redis Cluster
// and behind Redis Sentinel. One test locks a quorum of three servers on each framework.
//
// This package has no code but its tests.
package conformance
