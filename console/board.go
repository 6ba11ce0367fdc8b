package console

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/inspect"
)

const (
	// leastPause is the time from the end of a scan to the next one, at least.
	leastPause = 2 * time.Second
	// pauseFactor is that time, as a multiple of how long the scan took, at least.
	pauseFactor = 3
	// listBound limits the time of each list. What is found until then is shown.
	listBound = 20 * time.Second
	// longestWait is how long a page waits for the next lists.
	longestWait = 3 * time.Second
	// maxRecent is how many keys a board keeps beside those of its lists.
	maxRecent = 200
)

// A board has the last lists, which all viewers share. It is safe for concurrent use.
type board struct {
	inspector *inspect.Inspector
	bound     time.Duration // of each list
	pause     time.Duration // from the end of a scan to the next one, at least
	scanning  chan struct{} // has a value while a request looks through the keys

	mu      sync.Mutex
	lists   *lists
	failed  error // of the last scan
	next    time.Time
	history history
	recent  []inspect.Key // the last one is the newest
}

// lists are what one scan has found. They do not change.
type lists struct {
	at        time.Time
	rows      []lockRow // the locks with the most waiters first, then the ones held longest
	locks     inspect.Scan
	unknown   inspect.RecordPage // the oldest first
	processes inspect.ProcessPage
	holds     map[inspect.LeaseID]use
	waits     map[string]use         // by digest
	keys      map[string]inspect.Key // by digest
	links     map[string]processLink // by the id of a process
}

// A use is what a process says about a key that it holds or waits for.
type use struct {
	name, caller string
	since        time.Duration
	requests     int
}

func newBoard(i *inspect.Inspector) *board {
	return &board{inspector: i, bound: listBound, pause: leastPause, scanning: make(chan struct{}, 1)}
}

// A view is what a board shows at a time. lists is nil if no scan has succeeded yet. failed is nil if the
// last one did.
type view struct {
	lists  *lists
	failed error
	charts []chart
	covers time.Duration // of the charts
}

// look returns the last lists, and scans before that if they are due. It waits for the scan of another
// request only if there are no lists yet.
func (b *board) look(ctx context.Context) view {
	v, due := b.see()
	if !due {
		return v
	}
	if v.lists == nil && v.failed == nil {
		if err := b.begin(ctx); err != nil {
			return view{failed: err}
		}
	} else {
		select {
		case b.scanning <- struct{}{}:
		default:
			return v
		}
	}
	defer b.end()
	if _, due := b.see(); due {
		b.scan(context.WithoutCancel(ctx)) // other viewers get the lists, too
	}
	v, _ = b.see()
	return v
}

// see returns what there is, and whether a scan is due.
func (b *board) see() (v view, due bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return view{b.lists, b.failed, b.history.charts(), b.history.covers()}, !time.Now().Before(b.next)
}

// scan makes the lists.
func (b *board) scan(ctx context.Context) {
	begun := time.Now()
	found, err := b.read(ctx)
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next = now.Add(max(b.pause, pauseFactor*now.Sub(begun)))
	if b.failed = err; err == nil {
		b.lists = found
		b.history.add(found.sample())
	}
}

// read reads the lists from Redis.
func (b *board) read(ctx context.Context) (*lists, error) {
	l := &lists{holds: make(map[inspect.LeaseID]use), waits: make(map[string]use), keys: make(map[string]inspect.Key), links: make(map[string]processLink)}
	var locks inspect.Page
	err := b.list(ctx, func(ctx context.Context) (_ inspect.Scan, err error) {
		l.processes, err = b.inspector.Processes(ctx)
		return l.processes.Scan, err
	})
	if err == nil {
		err = b.list(ctx, func(ctx context.Context) (_ inspect.Scan, err error) {
			locks, err = b.inspector.Locks(ctx, inspect.Filter{})
			return locks.Scan, err
		})
	}
	if err == nil {
		err = b.list(ctx, func(ctx context.Context) (_ inspect.Scan, err error) {
			l.unknown, err = b.inspector.Records(ctx, inspect.Filter{State: core.StateUnknown})
			return l.unknown.Scan, err
		})
	}
	if err != nil {
		return nil, err
	}
	l.at = time.Now()
	l.arrange(locks)
	return l, nil
}

// list makes a list. If that takes too long, the list is truncated. Exception: if Redis has replied to no
// SCAN until then, the list has failed.
func (b *board) list(ctx context.Context, read func(context.Context) (inspect.Scan, error)) error {
	ctx, cancel := context.WithTimeout(ctx, b.bound)
	defer cancel()
	scan, err := read(ctx)
	if ctx.Err() != nil && scan.Scanned > 0 {
		return nil
	}
	return err
}

// arrange fills the maps and the rows, and sorts the lists.
func (l *lists) arrange(page inspect.Page) {
	l.locks = page.Scan
	for _, p := range l.processes.Processes {
		l.links[p.ID] = linkToProcess(p.ID, p, true)
		for _, h := range p.Holds {
			if h.Lease != "" {
				l.holds[h.Lease] = use{h.Name, h.Caller, h.For, 1}
			}
		}
		if p.Silent() { // its requests may have ended
			continue
		}
		for _, w := range p.Waits {
			u := l.waits[w.Digest]
			l.waits[w.Digest] = use{cmp.Or(u.name, w.Name), cmp.Or(u.caller, w.Caller), max(u.since, w.For), u.requests + w.Requests}
		}
	}
	l.rows = make([]lockRow, 0, len(page.Locks))
	for _, lock := range page.Locks {
		row := l.newRow(lock)
		l.keys[row.Digest] = lock.Key
		l.rows = append(l.rows, row)
	}
	for _, record := range l.unknown.Records {
		l.keys[record.Key.String()] = record.Key
	}
	slices.SortStableFunc(l.rows, func(a, b lockRow) int { return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), cmp.Compare(b.Held, a.Held)) })
	slices.SortStableFunc(l.unknown.Records, func(a, b inspect.Record) int { return cmp.Compare(b.Age, a.Age) })
}

// key returns the key with this digest, if a list has it, or an operator has seen its page before. If
// not, it waits for the next lists, unless that takes longer than a person does.
func (b *board) key(ctx context.Context, digest string) (inspect.Key, bool) {
	if key, known := b.known(digest); known {
		return key, true
	}
	b.look(ctx)
	if key, known := b.known(digest); known {
		return key, true
	}
	b.mu.Lock()
	left := time.Until(b.next)
	b.mu.Unlock()
	if left > longestWait {
		return inspect.Key{}, false
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		b.look(ctx)
	case <-ctx.Done():
	}
	return b.known(digest)
}

func (b *board) known(digest string) (inspect.Key, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for n, key := range b.recent {
		if key.String() == digest {
			return b.recent[n], true
		}
	}
	if b.lists == nil {
		return inspect.Key{}, false
	}
	key, known := b.lists.keys[digest]
	if known {
		b.keep(key)
	}
	return key, known
}

// remember keeps a key that an operator has looked up.
func (b *board) remember(key inspect.Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keep(key)
}

// keep keeps a key that a page shows, although no list may have it later.
func (b *board) keep(key inspect.Key) {
	b.recent = slices.DeleteFunc(b.recent, func(k inspect.Key) bool { return k == key })
	if len(b.recent) == maxRecent {
		b.recent = slices.Delete(b.recent, 0, 1)
	}
	b.recent = append(b.recent, key)
}

// begin waits until no other request looks through the keys. If it returns nil, call end.
func (b *board) begin(ctx context.Context) error {
	select {
	case b.scanning <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// end says that this request no longer looks through the keys.
func (b *board) end() { <-b.scanning }
