package compare

import (
	"fmt"
	"time"

	"github.com/reqlock/reqlock/tests/bench/internal/lock"
)

// The names of the suites of permits and of shared locks.
const (
	PermitsLone = "permits-lone"
	PermitsLine = "permits-line-128"
	PermitsHot  = "permits-4x16"
	PermitsBusy = "permits-4x16-1ms"

	SharedLone = "shared-lone"
	SharedLine = "shared-line-128"
	SharedHot  = "shared-4x16"
	SharedBusy = "shared-4x16-1ms"
)

// PermitsOf returns the name of a suite of so many processes, each with one goroutine.
func PermitsOf(processes int) string { return fmt.Sprintf("permits-%dx1", processes) }

// SharedOf returns a name like PermitsOf.
func SharedOf(processes int) string { return fmt.Sprintf("shared-%dx1", processes) }

const (
	permits = 8  // of each key
	readers = 90 // of a hundred turns
)

// permitSuites returns the suites of locks that eight goroutines may hold at a time.
func permitSuites() []Suite {
	const what = ", 8 permits"
	locks := []lock.Name{lock.ReqlockPermits, lock.RawPermits, lock.Asynq}
	all := []Suite{
		{
			Name: PermitsLone, Title: "one goroutine, one key" + what,
			Locks: append(locks[:len(locks):len(locks)], lock.Reqlock), Processes: 1, Goroutines: 1, OwnKeys: true,
		},
		{
			Name: PermitsLine, Title: "one key, 128 goroutines of one process, 1 ms section" + what,
			Locks: append(locks[:len(locks):len(locks)], lock.Channel), Processes: 1, Goroutines: 128, Section: time.Millisecond,
		},
		{
			Name: PermitsHot, Title: "one key, 4 processes of 16 goroutines, empty section" + what,
			Locks: locks, Processes: 4, Goroutines: 16,
		},
		{
			Name: PermitsBusy, Title: "one key, 4 processes of 16 goroutines, 1 ms section" + what,
			Locks: locks, Processes: 4, Goroutines: 16, Section: time.Millisecond,
		},
	}
	few := locks[:2] // a thousand servers of asynq would be measured more than their semaphores
	all = append(all, crowds(PermitsOf, what, few)...)
	for i := range all {
		all[i].Permits = permits
	}
	return all
}

// sharedSuites returns the suites of readers and writers, and the same without shared locks.
func sharedSuites() []Suite {
	const what = ", 9 of 10 turns read"
	locks := []lock.Name{lock.ReqlockShared, lock.RawShared}
	all := []Suite{
		{
			Name: SharedLone, Title: "one goroutine, one key" + what,
			Locks: locks, Processes: 1, Goroutines: 1, OwnKeys: true,
		},
		{
			Name: SharedLine, Title: "one key, 128 goroutines of one process, 1 ms section" + what,
			Locks: locks, Processes: 1, Goroutines: 128, Section: time.Millisecond,
		},
		{
			Name: SharedHot, Title: "one key, 4 processes of 16 goroutines, empty section" + what,
			Locks: locks, Processes: 4, Goroutines: 16,
		},
		{
			Name: SharedBusy, Title: "one key, 4 processes of 16 goroutines, 1 ms section" + what,
			Locks: locks, Processes: 4, Goroutines: 16, Section: time.Millisecond,
		},
	}
	all = append(all, crowds(SharedOf, what, locks)...)
	for i := range all {
		all[i].Readers = readers
	}
	return all
}

// crowds returns the suites of 1 to 1,000 processes with one goroutine each. At most four
// processes are started. Each of the others is a Locker in one of them, with clients of its
// own, so that it has its own connections, queue and place in line.
func crowds(name func(processes int) string, what string, locks []lock.Name) (all []Suite) {
	for _, size := range []struct{ processes, started int }{{1, 1}, {10, 2}, {100, 4}, {1000, 4}} {
		n, each := size.processes, size.processes/size.started
		all = append(all, Suite{
			Name: name(n), Title: fmt.Sprintf("one key, %d processes of one goroutine, 1 ms section", n) + what,
			Locks: locks, Processes: size.started, Goroutines: each, Lockers: each, Section: time.Millisecond,
			Stretch: longWindows,
		})
	}
	return all
}
