package core

import (
	"fmt"
	"log/slog"
)

// An Answer is the answer to an idempotent request, in the form in which it is stored: see
// Answered. NewAnswer of nethttplock, for each HTTP framework, and of grpclock make one, under the
// same filter as for the answer of a handler. The zero Answer is none. An Answer prints its size
// alone, because its bytes must not get into logs by accident.
type Answer struct{ bytes string }

// String returns the size of the answer.
func (a Answer) String() string { return fmt.Sprintf("reqlock.Answer(%d bytes)", len(a.bytes)) }

// GoString returns the same as String, for %#v.
func (a Answer) GoString() string { return a.String() }

// LogValue returns the same as String, for package slog.
func (a Answer) LogValue() slog.Value { return slog.StringValue(a.String()) }
