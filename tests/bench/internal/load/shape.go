package load

import (
	"fmt"
	"time"
)

// A Shape says which goroutines lock which keys.
type Shape struct {
	Processes  int
	Goroutines int           // in each process
	Lockers    int           // in each process, with clients of their own, like processes; 0 is one
	Section    time.Duration // how long a holder sleeps; 0 for an empty section
	OwnKeys    bool          // each goroutine has its own key, so there is no contention
	Burst      bool          // each goroutine takes the lock once in each round
	Permits    int           // how many goroutines may hold a key at a time; 0 is one
	Readers    int           // of a hundred turns, so many take a shared lock
	Keys       int           // one process holds so many keys; of two, the second one waits for them
	IsFirst    bool          // each lock is the first one of a new Locker with a new client
	NoScripts  bool          // the server loses its scripts before each lock
}

// The shapes of the suites.

func ownKeys(goroutines int) Shape {
	return Shape{Processes: 1, Goroutines: goroutines, OwnKeys: true}
}

func oneKey(processes, goroutines int, section time.Duration) Shape {
	return Shape{Processes: processes, Goroutines: goroutines, Section: section}
}

func burst(processes, goroutines int) Shape {
	return Shape{Processes: processes, Goroutines: goroutines, Burst: true}
}

func firstLock(noScripts bool) Shape {
	return Shape{Processes: 1, Goroutines: 1, OwnKeys: true, IsFirst: true, NoScripts: noScripts}
}

func manyKeys(processes, keys int) Shape {
	return Shape{Processes: processes, Goroutines: 256, OwnKeys: true, Keys: keys}
}

// crowd is that many processes with one goroutine each. At most four processes are started. Each
// of the others is a Locker in one of them, with its own connections, queue and place in line.
func crowd(processes int, section time.Duration) Shape {
	started := min(4, processes/5)
	each := processes / started
	return Shape{Processes: started, Goroutines: each, Lockers: each, Section: section}
}

// window returns the duration of a run. Waiters take long turns with a section, or in a crowd. A
// process that holds keys renews them once in four seconds.
func (s Shape) window(unit time.Duration) time.Duration {
	switch {
	case s.Keys > 0 && s.Processes == 1:
		return 4 * unit
	case s.Section > 0 || s.Lockers > 1 || s.Keys > 0:
		return 2 * unit
	}
	return unit
}

func (s Shape) String() string {
	text := fmt.Sprintf("%d goroutines of one process", s.Goroutines)
	switch {
	case s.Keys > 0 && s.Processes == 1:
		return fmt.Sprintf("one process takes %d keys, holds them and releases them", s.Keys)
	case s.Keys > 0:
		return fmt.Sprintf("one process waits for %d keys that another one holds, and gets them", s.Keys)
	case s.Lockers > 1:
		text = fmt.Sprintf("%d processes of one goroutine", s.Processes*s.Lockers)
	case s.Processes > 1:
		text = fmt.Sprintf("%d processes of %d goroutines", s.Processes, s.Goroutines)
	case s.Goroutines == 1:
		text = "one goroutine"
	}
	switch {
	case s.OwnKeys && s.Goroutines == 1:
		text += ", one key"
	case s.OwnKeys:
		text += ", each with a key of its own"
	case s.Burst:
		text += ", which take one key once, at the same time"
	case s.Section > 0:
		text += fmt.Sprintf(", one key, %v section", s.Section)
	default:
		text += ", one key, empty section"
	}
	if s.Permits > 1 {
		text += fmt.Sprintf(", %d permits", s.Permits)
	}
	if s.Readers > 0 {
		text += fmt.Sprintf(", %d %% of the turns read", s.Readers)
	}
	return text
}
