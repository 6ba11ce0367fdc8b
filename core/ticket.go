package core

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/reqlock/reqlock/internal/engine"
)

// A Ticket lets a process take over the lease that Lease.Handover has ended: see Locker.Accept. It
// marshals as text, for the payload of a job.
//
// A ticket is a secret until its grace is over or it is accepted. It names the key of the lock, and
// whoever reads it, as in a job store, can until then take the lock over, or free it. After that, only
// the key can be read from it. It prints as a digest of the key. Exception: it marshals as itself, so
// do not log a payload as JSON.
type Ticket struct {
	parts func() ticketParts // a function, because package fmt prints unexported fields, and follows their pointers
}

// ticketParts are what a Ticket says.
type ticketParts struct {
	secret [16]byte
	key    string
}

// ticketMark begins the text of a ticket, with its version.
const ticketMark = "reqlock-ticket-1."

// token returns the token that the key holds until the ticket is accepted. It has a digest as its
// process id: lines of the log and package inspect show the ids of processes. So no reader of an id can
// make a ticket of it, neither for a key that waits for a ticket nor for one that a process holds.
func (p *ticketParts) token() string {
	digest := sha256.Sum256(append(p.secret[:], p.key...))
	return engine.NewTicket(hex.EncodeToString(digest[:len(p.secret)]))
}

// IsZero reports whether the ticket is the zero Ticket, which no process can accept.
func (t Ticket) IsZero() bool { return t.parts == nil }

// newTicket returns the ticket with these parts.
func newTicket(parts ticketParts) Ticket { return Ticket{func() ticketParts { return parts }} }

// MarshalText returns the ticket itself, as a text of letters, digits and the characters - _ and the
// dot. The text of the zero Ticket is empty.
func (t Ticket) MarshalText() ([]byte, error) {
	if t.parts == nil {
		return nil, nil
	}
	parts := t.parts()
	return base64.RawURLEncoding.AppendEncode([]byte(ticketMark), append(parts.secret[:], parts.key...)), nil
}

// UnmarshalText reads the result of MarshalText. It returns an error for any other text.
func (t *Ticket) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*t = Ticket{}
		return nil
	}
	encoded, isTicket := bytes.CutPrefix(text, []byte(ticketMark))
	said, err := base64.RawURLEncoding.Strict().AppendDecode(nil, encoded)
	isWrapped := bytes.ContainsAny(encoded, "\r\n") // package base64 ignores them
	if parts := (ticketParts{}); isTicket && !isWrapped && err == nil && len(said) > len(parts.secret) {
		parts.key = string(said[copy(parts.secret[:], said):])
		*t = newTicket(parts)
		return nil
	}
	return errors.New("reqlock: Ticket: the text is not one of Ticket.MarshalText, or that of a later version")
}

// String names the ticket by a digest of its key, as String of a Lease does.
func (t Ticket) String() string {
	if t.parts == nil {
		return "reqlock.Ticket()"
	}
	return "reqlock.Ticket(" + EventKey{t.parts().key}.String() + ")"
}

// GoString returns the same as String.
func (t Ticket) GoString() string { return t.String() }

// Format writes the same as String, for all verbs of package fmt.
func (t Ticket) Format(to fmt.State, _ rune) { _, _ = io.WriteString(to, t.String()) }

// LogValue returns the same as String, for package slog.
func (t Ticket) LogValue() slog.Value { return slog.StringValue(t.String()) }
