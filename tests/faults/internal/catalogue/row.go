package catalogue

import "slices"

// A Row is one way to fail.
type Row struct {
	// Number is what directives call it by, from 1.
	Number int
	// Trigger is what happens.
	Trigger string
	// Right is what has to come of it.
	Right string
	// Kind says how far that holds; nothing is [Holds].
	Kind Kind
	// Guard is what protects the user where it does not hold, or does not show.
	// All kinds but [Holds] have one.
	Guard string
}

// kind returns how far the row holds.
func (r Row) kind() Kind {
	if r.Kind == "" {
		return Holds
	}
	return r.Kind
}

// A Group is the rows of one part of the lock.
type Group struct {
	Letter string
	Title  string
	Rows   []Row
}

// Groups returns all rows, in the order of their numbers.
func Groups() []Group {
	return []Group{
		{"A", "Taking a lock", acquireRows()},
		{"B", "Releasing and renewing it", leaseRows()},
		{"C", "The server", serverRows()},
		{"D", "Waiting", waitingRows()},
		{"E", "The middleware", middlewareRows()},
		{"F", "Replaying an answer", replayRows()},
		{"G", "Another user of the server", attackRows()},
	}
}

// rowsOf returns the rows of groups, one after another.
func rowsOf(groups []Group) []Row {
	var all []Row
	for _, group := range groups {
		all = slices.Concat(all, group.Rows)
	}
	return all
}
