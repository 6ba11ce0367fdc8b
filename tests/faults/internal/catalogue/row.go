package catalogue

import "slices"

// A Row is one way to fail.
type Row struct {
	// Number identifies the row in directives, from 1.
	Number int
	// Trigger is what happens.
	Trigger string
	// Right is what the lock must do.
	Right string
	// Kind says how far that holds. The default is [Holds].
	Kind Kind
	// Guard is what protects the user if the row does not simply hold. All kinds except
	// [Holds] have one.
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

// Groups returns all rows, ordered by number.
func Groups() []Group {
	return []Group{
		{"A", "Taking a lock", acquireRows()},
		{"B", "Releasing and renewing it", leaseRows()},
		{"C", "The server", serverRows()},
		{"D", "Waiting", waitingRows()},
		{"E", "The middleware", middlewareRows()},
		{"F", "Replaying an answer", replayRows()},
		{"G", "Another user of the server", attackRows()},
		{"H", "Permits and shared locks", sharedRows()},
	}
}

// rowsOf returns the rows of all groups.
func rowsOf(groups []Group) []Row {
	var all []Row
	for _, group := range groups {
		all = slices.Concat(all, group.Rows)
	}
	return all
}
