// Package conformance holds the adapters to one behaviour: one table of cases
// runs over net/http, Gin, Echo and gRPC, with the same core, a real
// redis-server and real connections.
//
// A case speaks of a route in neutral terms: where the locks stand, where their
// keys come from, what stands around them, what the handler does. A framework
// registers the route as its users do, sends requests over a connection, and
// reads the answers. What is expected of an answer is the row of core.OutcomeOf
// in the framework's own terms.
//
// Idempotent endpoints have tables of their own, of all that is known to go wrong
// with them. That of HTTP is scenarios: it speaks of an endpoint in net/http's
// terms, which its frameworks share, and elsewhere says what is no row of it.
//
// There is nothing in this package but its tests.
package conformance
