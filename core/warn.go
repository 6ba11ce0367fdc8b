package core

// Warn sends an event of the kind Warned to the observers. An adapter calls Warn if it finds
// at a request that it was not set up as meant. err says what is wrong and what to write
// instead, and must contain no key. An adapter warns once of each mistake, not once for each
// request. Warn is safe for concurrent use.
func (l *Locker) Warn(err error) { l.settings.notify(Event{Kind: Warned, Err: err}) }
