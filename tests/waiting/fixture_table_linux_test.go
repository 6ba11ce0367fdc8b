package waiting

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/reqlock/reqlock/tests/internal/history"
)

// A table is a file that all processes of a test map. Its content survives the death of a
// process. Each word outside the head has one process that writes it, and each word of a
// turn one goroutine.
type table struct {
	tableSize
	head      *headRow
	processes []processRow
	turns     []turnRow
}

// A tableSize is how much a table has room for.
type tableSize struct{ Processes, Goroutines, Turns int }

// A headRow is what all processes share.
type headRow struct {
	start atomic.Int64 // not 0: the workers may start
	stop  atomic.Int64 // not 0: the workers begin no more calls
	// linger is process+1 to make the next holder of the process stay in the critical
	// section until its lease ends. Then it is -id of the turn that does.
	linger atomic.Int64
	inside [soakKeys]atomic.Int64 // for each key of a soak, the id of the turn in the critical section
	served [soakKeys]atomic.Int64 // for each key of a soak, how many turns were in it
}

// A processRow is what a process reports.
type processRow struct {
	ready    atomic.Int64 // it waits for the start
	grants   atomic.Int64
	commands atomic.Int64 // sent to Redis, without those of the subscription
	soak     soakRow
}

// A turnRow is a turn of a goroutine.
type turnRow struct {
	asked, granted, ended, left, fence, lease, lost, limit atomic.Int64 // see history.Hold
}

func (s tableSize) rows() int { return s.Processes * s.Goroutines * s.Turns }

// newTable creates a table in the folder of the test, and returns its path.
func newTable(t *testing.T, s tableSize) (made *table, path string) {
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
func mapTable(t *testing.T, path string, s tableSize) *table {
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
		tableSize: s,
		head:      (*headRow)(head),
		processes: unsafe.Slice((*processRow)(processes), s.Processes),
		turns:     unsafe.Slice((*turnRow)(turns), s.rows()),
	}
}

// id returns the number of a turn, which is not 0.
func (t *table) id(process, goroutine, turn int) int64 {
	return int64((process*t.Goroutines+goroutine)*t.Turns+turn) + 1
}

func (t *table) processOf(id int64) int { return int(id-1) / (t.Goroutines * t.Turns) }

func (t *table) turn(id int64) *turnRow { return &t.turns[id-1] }

func (t *table) grants() (n int64) {
	for p := range t.processes {
		n += t.processes[p].grants.Load()
	}
	return n
}

func (t *table) history() (h history.History) {
	for i := range t.turns {
		id := int64(i + 1)
		row, process, goroutine := t.turn(id), t.processOf(id), i/t.Turns%t.Goroutines
		if row.asked.Load() == 0 {
			continue
		}
		call := history.Op{
			Process: process, Client: goroutine, Name: fmt.Sprintf("process %d, goroutine %d, turn %d", process, goroutine, i%t.Turns),
			Kind: history.Lock, Key: theKey, Call: row.asked.Load(), Limit: int(row.limit.Load()), Lease: strconv.FormatInt(id, 10),
		}
		if at := row.granted.Load(); at != 0 {
			call.Return, call.Outcome = at, history.Granted
			call.Fence, call.Episode = row.fence.Load(), fmt.Sprintf("%d:%d", process, row.lease.Load())
		}
		h.Ops = append(h.Ops, call)
		if row.ended.Load() == 0 {
			continue
		}
		end := history.Op{
			Process: process, Client: goroutine, Kind: history.Release, Key: theKey, Outcome: history.Done,
			Call: row.left.Load(), Lease: call.Lease, ReliedUntil: row.ended.Load(),
		}
		if row.lost.Load() != 0 {
			end.Outcome = history.Lost
		}
		h.Ops = append(h.Ops, end)
	}
	return h
}

// sleep sleeps more exactly than time.Sleep does in an idle process.
func sleep(d time.Duration) {
	if d > 0 {
		span := syscall.NsecToTimespec(d.Nanoseconds())
		_ = syscall.Nanosleep(&span, nil) // a signal may end it early
	}
}
