package traffic

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
	"github.com/reqlock/reqlock/tests/faults/internal/traffic/client"
)

// A journal is all that processes have reported: calls, lags, fast leases and sizes. It is
// safe for concurrent use.
type journal struct {
	mu     sync.Mutex
	ops    []history.Op
	at     map[callID]int // index in ops
	grants int
	served map[int]bool // by number of a client: it was granted a lock
	lags   []history.Lag
	fast   []history.FastLease
	sizes  []history.Size
}

// A callID identifies a call.
type callID struct{ process, number int }

func newJournal() *journal { return &journal{at: map[callID]int{}, served: map[int]bool{}} }

// read reads the reports of one process until it has ended.
func (j *journal) read(reports io.ReadCloser) error {
	defer func() { _ = reports.Close() }()
	lines := bufio.NewReader(reports)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // the process died within a line, so its call had not been reported
		}
		if err != nil {
			return err
		}
		var report client.Report
		if err := json.Unmarshal(line, &report); err != nil {
			return fmt.Errorf("report %q: %w", line, err)
		}
		j.record(report)
	}
}

// record records a report: a call, what more is known of it, or another observation.
func (j *journal) record(r client.Report) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case r.Lag != nil:
		j.lags = append(j.lags, *r.Lag)
		return
	case r.Size != nil:
		j.sizes = append(j.sizes, *r.Size)
		return
	case r.FastLeases != nil:
		j.fast = append(j.fast, r.FastLeases...)
		for _, lease := range r.FastLeases {
			j.recordGrant(lease.Client)
		}
		return
	}
	id := callID{r.Op.Process, r.Call}
	i, known := j.at[id]
	if !known {
		i = len(j.ops)
		j.at[id] = i
		j.ops = append(j.ops, history.Op{})
	}
	j.ops[i] = r.Op
	if lock := r.Op.Kind == history.Lock || r.Op.Kind == history.Try; lock && r.Op.Outcome == history.Granted {
		j.recordGrant(r.Op.Client)
	}
}

// recordGrant counts a lock that was granted to the client with this number. The caller holds j.mu.
func (j *journal) recordGrant(number int) {
	j.grants++
	j.served[number] = true
}

// fill adds all reports except calls to a history.
func (j *journal) fill(h *history.History) {
	j.mu.Lock()
	defer j.mu.Unlock()
	h.Lags, h.FastLeases, h.Sizes = slices.Clone(j.lags), slices.Clone(j.fast), slices.Clone(j.sizes)
}

// grantCount returns the number of granted locks.
func (j *journal) grantCount() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.grants
}

// servedCount returns the number of clients that were granted a lock.
func (j *journal) servedCount() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.served)
}

// calls returns the calls for which the condition holds, in order.
func (j *journal) calls(condition func(history.Op) bool) []history.Op {
	j.mu.Lock()
	defer j.mu.Unlock()
	var found []history.Op
	for _, op := range j.ops {
		if condition(op) {
			found = append(found, op)
		}
	}
	slices.SortStableFunc(found, func(a, b history.Op) int { return cmp.Compare(a.Call, b.Call) })
	return found
}
