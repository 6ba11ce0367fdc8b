// Package httpbody reads the bodies of requests of net/http for keys and fingerprints.
//
// A body that is read is replaced by one that yields the same bytes to the handler. An ambiguous
// request, in which a handler could read another value than the lock, is refused.
package httpbody
