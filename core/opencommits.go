package core

import "time"

// OpenCommits are the commits that go on in the background, because Redis did not accept them
// while their callers waited: see Attempt.Commit.
type OpenCommits struct {
	// Count is how many there are.
	Count int
	// Bytes is the size of their answers and keys together.
	Bytes int
	// Oldest is for how long the oldest one has gone on; 0 if there is none.
	Oldest time.Duration
}

// OpenCommits returns the open commits of the Locker and its views. It does no I/O.
func (l *Locker) OpenCommits() OpenCommits {
	count, bytes, oldest := l.engine.OpenCommits()
	return OpenCommits{Count: count, Bytes: int(bytes), Oldest: oldest}
}
