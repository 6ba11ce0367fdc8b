package inspect

import (
	"cmp"
	"strings"
	"time"

	"github.com/reqlock/reqlock/internal/redis/registry"
)

// A Process is what a process with core.WithInstance has written about itself, each 10 s. Redis has it
// until an hour after the last time, and the process deletes it when it closes its Locker. The texts
// are as they were written: escape them for a page or a terminal.
type Process struct {
	// ID is the id of the process: 32 hex digits, as in a Holder, a Waiter and in lines of the log.
	ID string
	// Service, Version, Host and PID are those of core.Instance.
	Service, Version, Host string
	PID                    int
	// Started is when the Locker of the process was made, by the clock of the process.
	Started time.Time
	// Age is how long ago the process wrote this. It is -1 if that is unknown.
	Age time.Duration
	// Held is how many leases the process held then, and Waiting how many of its requests waited.
	Held, Waiting int
	// Holds are the leases that it had held longest, at most 20, the longest one first.
	Holds []Hold
	// Waits are the keys that its requests had waited for longest, at most 20, the longest one first.
	Waits []Wait
}

// Silent reports whether the process has written nothing for 30 s. It is not known to be dead: it may not
// reach Redis, or stand still.
func (p Process) Silent() bool { return p.Age < 0 || p.Age > registry.SilentAfter }

// A Hold is a lease that a process holds for one request.
type Hold struct {
	// Digest is the String of the Key.
	Digest string
	// Lease is that of the Holder. It is "" if the process has an earlier version of reqlock.
	Lease LeaseID
	// Name is the name of the lock, or "": see core.WithName.
	Name string
	// Caller is the code that took the lease: "" without core.WithCaller.
	Caller string
	// For is how long the request has held the lease so far. It goes on while the record of the process
	// ages, so a lease that was released since is still counted.
	For time.Duration
	// Idempotent is true for an idempotent request, and Shared for a lease of core.WithPermits or
	// core.WithShared.
	Idempotent, Shared bool
}

// A Wait is one key for which requests of a process wait.
type Wait struct {
	// Digest is the String of the Key.
	Digest string
	// Name and Caller are those of the request that has waited longest, as in a Hold.
	Name, Caller string
	// For is how long that request has waited so far, as in a Hold.
	For time.Duration
	// Requests is how many requests of the process wait for the key.
	Requests int
}

// A ProcessPage is a list of processes.
type ProcessPage struct {
	Scan

	// Processes are sorted by Service, Host, PID and ID.
	Processes []Process
}

// Hold returns what the process does with the lease of a Holder, if that is one of its Holds. Within a
// process, a lease passes from one request to the next one: for up to 10 s after that, the Hold is that
// of the request before.
func (p Process) Hold(lease LeaseID) (Hold, bool) {
	for _, h := range p.Holds {
		if h.Lease == lease && lease != "" {
			return h, true
		}
	}
	return Hold{}, false
}

// Wait returns the requests of the process that wait for the key, if that is one of its Waits.
func (p Process) Wait(key Key) (Wait, bool) {
	digest := key.String()
	for _, w := range p.Waits {
		if w.Digest == digest {
			return w, true
		}
	}
	return Wait{}, false
}

// newProcess returns the process with this id and record.
func newProcess(id string, record *registry.Process) Process {
	p := Process{
		ID: id, Service: record.Service, Version: record.Version, Host: record.Host, PID: record.PID,
		Started: record.Started, Age: record.Age, Held: record.Held, Waiting: record.Waiting,
	}
	for _, h := range record.Holds {
		p.Holds = append(p.Holds, Hold{
			Digest: h.Digest, Lease: LeaseID(h.Lease), Name: h.Name, Caller: h.Caller, For: record.LastedFor(h.Since),
			Idempotent: h.Idempotent, Shared: h.Shared,
		})
	}
	for _, w := range record.Waits {
		p.Waits = append(p.Waits, Wait{Digest: w.Digest, Name: w.Name, Caller: w.Caller, For: record.LastedFor(w.Since), Requests: w.Requests})
	}
	return p
}

// compareProcesses is the order of a ProcessPage.
func compareProcesses(a, b Process) int {
	return cmp.Or(strings.Compare(a.Service, b.Service), strings.Compare(a.Host, b.Host), cmp.Compare(a.PID, b.PID), strings.Compare(a.ID, b.ID))
}
