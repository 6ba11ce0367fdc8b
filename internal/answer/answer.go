// Package answer has the type of an answer that an operator gives to a request: see
// core.Answered. Only the adapters make one, so that each has the format and the filter of
// an answer that a handler has given. Package internal/adapter/record encodes and decodes the
// bytes of a Record; this package only holds them, because core must not know their format.
package answer

import (
	"fmt"
	"log/slog"
)

// A Record is an answer of a request, as the adapters store it. An adapter's function Answer
// makes one. The zero Record is none.
type Record struct{ bytes string }

// New returns the Record with an adapter's bytes.
func New(bytes []byte) Record { return Record{string(bytes)} }

// Bytes returns a copy of the bytes of a Record.
func Bytes(r Record) []byte { return []byte(r.bytes) }

// String returns the size of the Record. Its bytes must not get into logs by accident.
func (r Record) String() string { return fmt.Sprintf("reqlock.Record(%d bytes)", len(r.bytes)) }

// GoString returns the same as String, for %#v.
func (r Record) GoString() string { return r.String() }

// LogValue returns the same as String, for package slog.
func (r Record) LogValue() slog.Value { return slog.StringValue(r.String()) }
