package quorumstore

import (
	"slices"
	"sync"
	"time"

	"github.com/reqlock/reqlock/internal/inflight"
)

// echoTime is how long a hint of a minority waits for others. Who looks at the word
// of the first server may find that the votes of the rest are not free yet.
const echoTime = 10 * time.Millisecond

// echoes make one hint of those that several servers give for the same reason.
type echoes struct {
	majority int
	work     *inflight.Counter
	tell     func(key, token string)

	mu    sync.Mutex
	heard map[hint]*echo
}

// A hint is what a server says.
type hint struct{ key, token string }

// An echo is a hint that was heard a moment ago.
type echo struct {
	from []int // servers
	told bool
}

// hear takes in a hint of a server.
func (e *echoes) hear(server int, key, token string) {
	h := hint{key, token}
	e.mu.Lock()
	one := e.heard[h]
	if one == nil {
		one = &echo{}
		if e.heard == nil {
			e.heard = make(map[hint]*echo)
		}
		e.heard[h] = one
		e.work.Add()
		time.AfterFunc(echoTime, func() { e.fade(h) })
	}
	tell := one.add(server, e.majority)
	e.mu.Unlock()
	if tell {
		e.tell(key, token)
	}
}

// fade forgets a hint, and tells it if that was not done.
func (e *echoes) fade(h hint) {
	defer e.work.Done()
	e.mu.Lock()
	told := e.heard[h].told
	delete(e.heard, h)
	e.mu.Unlock()
	if !told {
		e.tell(h.key, h.token)
	}
}

// add adds a server, and reports whether a majority has said it now. One that says
// it again has another reason.
func (o *echo) add(server, majority int) (tell bool) {
	if slices.Contains(o.from, server) {
		o.from, o.told = o.from[:0], false
	}
	o.from = append(o.from, server)
	tell = !o.told && len(o.from) >= majority
	o.told = o.told || tell
	return tell
}
