package store

import "time"

// A Comparer compares the values of many keys by one command.
type Comparer interface {
	// CanCompare reports whether the keys of a Compare may be any keys. In a cluster, a command has
	// keys of one slot only.
	CanCompare() bool
	// Compare passes the indexes of the keys that do not have the values any more. It changes
	// nothing. The rules of Store apply, and the caller must not change seen before done is called.
	Compare(seen []Seen, bound time.Duration, done func(changed []int, err error))
}

// Seen is a key with its value in an earlier Answer: the Holder.
type Seen struct{ Key, Holder string }
