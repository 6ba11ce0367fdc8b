package core

import "time"

// Warn sends a Warned event with err to the observers. Adapters call it once for a mistake in
// the setup of a server that they find only while it runs. The text of err contains no key.
func (l *Locker) Warn(err error) { l.settings.notify(Event{Kind: Warned, Err: err}) }

// MaxWait returns how long Enter, Begin and the middlewares wait for a lock that is held: the
// duration of WithWait, or 0 if it is not set. An adapter can compare it with the timeouts of
// its server.
func (l *Locker) MaxWait() time.Duration { return l.waitOr(0) }
