// Package configuration writes docs/configuration.md: a table of all options, from the
// comments in the code.
//
// A comment has this form. A sentence says where the option is allowed, unless that is
// everywhere:
//
//	// WithTTL sets how long a lease lasts without a renewal: 10 s if not set, at least 100 ms.
//
//	// WithRenewal sets whether a lease is renewed while it is held. It is on if not set.
//
//	// WithStored sets which answers are stored, by their status. The default stores 2xx.
//
//	// Only New and NewQuorum accept this option.
//
//	// NewQuorum refuses this option.
//
//	// WithStored is an option of Idempotent.
package configuration
