package core

import "time"

// MaxWait returns how long Enter, Begin and the middlewares wait for a lock that is held: the
// duration of WithWait, or 0 if it is not set. An adapter can compare it with the timeouts of
// its server.
func (l *Locker) MaxWait() time.Duration { return l.waitOr(0) }
