package core

import (
	"log/slog"
	"strings"
)

// LogValue returns the same as String, for package slog.
func (l *Lease) LogValue() slog.Value { return slog.StringValue(l.String()) }

// String names the leases by digests of their keys, as String of a Lease does.
func (s *LeaseSet) String() string {
	var keys []string
	for _, lease := range s.Leases() {
		keys = append(keys, EventKey{lease.Key()}.String())
	}
	return "reqlock.LeaseSet(" + strings.Join(keys, ", ") + ")"
}

// GoString returns the same as String, for %#v.
func (s *LeaseSet) GoString() string { return s.String() }

// LogValue returns the same as String, for package slog.
func (s *LeaseSet) LogValue() slog.Value { return slog.StringValue(s.String()) }

// String names the attempt by a digest of the key of its lock, as events do. So neither the
// key nor a stored answer gets into logs by accident.
func (a *Attempt) String() string {
	return "reqlock.Attempt(" + EventKey{attemptMark + a.Key()}.String() + ")"
}

// GoString returns the same as String, for %#v.
func (a *Attempt) GoString() string { return a.String() }

// LogValue returns the same as String, for package slog.
func (a *Attempt) LogValue() slog.Value { return slog.StringValue(a.String()) }

// String says what the operator has found out, without the answer.
func (r Resolution) String() string {
	how := [...]string{noResolution: "none", notDone: "NotDone", done: "Done", answered: "Answered"}[r.how]
	return "reqlock.Resolution(" + how + ")"
}

// GoString returns the same as String, for %#v.
func (r Resolution) GoString() string { return r.String() }

// LogValue returns the same as String, for package slog.
func (r Resolution) LogValue() slog.Value { return slog.StringValue(r.String()) }

// String names the leases, because the context package prints it.
func (c *setContext) String() string { return c.set.String() }

// String hides the keys that are held.
func (*Locker) String() string { return "reqlock.Locker" }

// GoString returns the same as String, for %#v.
func (l *Locker) GoString() string { return l.String() }
