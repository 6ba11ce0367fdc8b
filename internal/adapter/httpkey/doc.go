// Package httpkey holds the keys that the adapters of all HTTP frameworks share.
// They use net/http's request and depend on no framework.
//
// A key that reads the body reads all of it, up to a limit, and replaces it by a
// body that yields the same bytes to the handler: see body.go. An ambiguous request, in
// which a handler could read another value than the lock, is refused. CopyParsedForm copies
// a form that a handler has parsed to the request of the outer middlewares.
package httpkey
