// Package check judges histories.
//
// It asks what a user would: was anybody inside together with somebody else, did
// fences rise, was an update lost at a resource that looks at fences, was
// somebody who waited forgotten, had a request two answers. It believes nothing
// that the lock says of itself: only what clients have called and heard, when,
// and what the resource has seen.
package validate
