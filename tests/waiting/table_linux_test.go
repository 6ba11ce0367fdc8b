package waiting

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"
)

// A table is a file that all processes of a test map. What a process wrote to
// it stays when the process is killed. All words but those of the head are
// written by one process each, and a turn's by one goroutine.
type table struct {
	shape
	head      *headRow
	processes []processRow
	turns     []turnRow
}

// A shape says what a table has room for.
type shape struct{ Processes, Goroutines, Turns int }

// A headRow is what all processes share.
type headRow struct {
	gate atomic.Int64 // not 0: go
	stop atomic.Int64 // not 0: begin nothing more
	// linger is process+1 to make the process's next holder stay inside until
	// its lease ends; then it is -id of the one that does.
	linger atomic.Int64
	inside [soakKeys]atomic.Int64 // the id of who is inside, for each key
	served [soakKeys]atomic.Int64 // how many have been inside, in a soak
}

// A processRow is what a process tells of itself.
type processRow struct {
	ready     atomic.Int64 // it stands at the gate
	grants    atomic.Int64
	commands  atomic.Int64    // sent to Redis, beside those of the subscription
	handovers [5]atomic.Int64 // by core.Handover
	soaked    soakRow
}

// A turnRow is a turn; see hold.
type turnRow struct {
	asked, granted, ended, fence, episode, lost atomic.Int64
	met                                         atomic.Int64 // the id of who was inside
}

func (s shape) rows() int { return s.Processes * s.Goroutines * s.Turns }

// newTable makes a table in the directory of the test, and returns its path.
func newTable(t *testing.T, s shape) (made *table, path string) {
	t.Helper()
	size := unsafe.Sizeof(headRow{}) + uintptr(s.Processes)*unsafe.Sizeof(processRow{}) +
		uintptr(s.rows())*unsafe.Sizeof(turnRow{})
	path = filepath.Join(t.TempDir(), "table")
	if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	return mapTable(t, path, s), path
}

// mapTable maps the table until the end of the test.
func mapTable(t *testing.T, path string, s shape) *table {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	mapped, err := syscall.Mmap(int(file.Fd()), 0, int(info.Size()), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Munmap(mapped); err != nil {
			t.Error(err)
		}
	})
	head := unsafe.Pointer(&mapped[0])
	processes := unsafe.Add(head, unsafe.Sizeof(headRow{}))
	turns := unsafe.Add(processes, uintptr(s.Processes)*unsafe.Sizeof(processRow{}))
	return &table{
		shape:     s,
		head:      (*headRow)(head),
		processes: unsafe.Slice((*processRow)(processes), s.Processes),
		turns:     unsafe.Slice((*turnRow)(turns), s.rows()),
	}
}

// id returns the number of a turn, which is not 0.
func (t *table) id(process, goroutine, turn int) int64 {
	return int64((process*t.Goroutines+goroutine)*t.Turns+turn) + 1
}

// processOf returns the process of an id.
func (t *table) processOf(id int64) int { return int(id-1) / (t.Goroutines * t.Turns) }

// turn returns the row of an id.
func (t *table) turn(id int64) *turnRow { return &t.turns[id-1] }

// grants counts the grants so far, of all processes.
func (t *table) grants() (n int64) {
	for p := range t.processes {
		n += t.processes[p].grants.Load()
	}
	return n
}

// history returns all turns that have begun.
func (t *table) history() history {
	var all history
	holds := make(map[int64]*hold)
	for i := range t.turns {
		id := int64(i + 1)
		row := t.turn(id)
		if row.asked.Load() == 0 {
			continue
		}
		one := &hold{
			process:   t.processOf(id),
			goroutine: i / t.Turns % t.Goroutines,
			turn:      i % t.Turns,
			asked:     row.asked.Load(),
			granted:   row.granted.Load(),
			ended:     row.ended.Load(),
			fence:     row.fence.Load(),
			episode:   row.episode.Load(),
			lost:      row.lost.Load() != 0,
		}
		holds[id] = one
		all = append(all, one)
	}
	for id, one := range holds {
		if other := t.turn(id).met.Load(); other != 0 {
			one.met = holds[other]
		}
	}
	return all
}
