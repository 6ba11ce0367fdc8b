package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/reqlock/reqlock/inspect"
)

// A holderRow is a lease in the page of a lock.
type holderRow struct {
	inspect.Holder

	Link         processLink
	Name, Caller string
	Held         time.Duration // -1 if the record of the process does not say it
	Since        time.Time
	Risk         string // what is known of a holder whose lease is freed at once
}

// A waiterRow is a process that waits, in the page of a lock.
type waiterRow struct {
	inspect.Waiter

	Link         processLink
	Name, Caller string
	Waited       time.Duration // of the request that waits longest; -1 if not known
	Requests     int           // 0 if not known
}

// An answer is what a page says about a form.
type answer struct {
	status int        // 200 if 0
	alert  string     // why nothing was done
	did    string     // what the address says that was done: a page says it only if what it reads agrees
	ended  string     // a lease which that has ended
	reason string     // what the operator has typed
	sent   ActionKind // the form with that reason
}

type lockPage struct {
	frame
	inspect.Lock

	Digest    string
	Raw       string // the key with WithRawKeys
	Name      string
	Holds     []holderRow
	Queue     []waiterRow
	IsFree    bool
	Revocable []holderRow     // the leases that Revoke ends
	Freeable  []holderRow     // the leases that FreeNow ends
	CanEnd    bool            // a form can end a lease
	Allowed   map[string]bool // by the name of an action
	Actor     string
	Reasons   map[string]string // by the name of an action
	LeaseIDs  string            // of the holders that the page shows
}

// showLock serves the page of one lock, which is read now.
func (c *Console) showLock(w http.ResponseWriter, r *http.Request, digest string, a answer) {
	ctx := r.Context()
	key, known := c.board.key(ctx, digest)
	v, _ := c.board.see()
	if !known {
		c.unknownKey(w, r, v)
		return
	}
	lock, err := c.readLock(ctx, key)
	page := &lockPage{frame: frame{Title: "Lock " + digest, Nav: "overview", Polls: true, Alert: a.alert}, Lock: lock, Digest: digest, Reasons: map[string]string{a.sent.String(): a.reason}}
	page.showState(v)
	page.Trouble, page.DataAt = "", time.Now()
	switch {
	case errors.Is(err, inspect.ErrNotFound):
		page.Lock, page.IsFree = inspect.Lock{Key: key, Idempotent: isAttempt(key)}, true
	case err != nil:
		page.showLast(v, key, err)
		a.status = http.StatusServiceUnavailable
	}
	page.fill()
	page.Raw = c.raw(key)
	page.Actor, page.Allowed = c.whoActs(r)
	for _, row := range page.Holds {
		if page.Allowed[Revoke.String()] && row.Kind == inspect.HolderProcess && !page.Idempotent {
			page.Revocable = append(page.Revocable, row)
		}
		if page.Allowed[FreeNow.String()] && (row.Kind == inspect.HolderProcess || row.Kind == inspect.HolderRevoked) && !page.Idempotent {
			page.Freeable = append(page.Freeable, row)
		}
	}
	page.CanEnd = len(page.Revocable)+len(page.Freeable) > 0
	if err == nil || page.IsFree {
		page.say(a)
	}
	c.render(w, r, max(a.status, http.StatusOK), "lock", page)
}

// State says in words what the lock is.
func (p *lockPage) State() string {
	revoked := 0
	for _, h := range p.Holders {
		if h.Kind == inspect.HolderRevoked {
			revoked++
		}
	}
	switch {
	case p.IsFree:
		return "free: nobody holds it, and nobody waits"
	case len(p.Holders) == 0:
		return "nobody holds it"
	case p.Shared && revoked > 0:
		return fmt.Sprintf("%s, %d of them revoked", count(len(p.Holders), "lease is out", "leases are out"), revoked)
	case p.Shared:
		return count(len(p.Holders), "lease is out", "leases are out")
	case revoked > 0:
		return "revoked: the next holder gets it in " + lasted(p.Holders[0].LeaseLeft)
	default:
		return "held"
	}
}

// say fills what an action has done, as far as the lock shows it.
func (p *lockPage) say(a answer) {
	isOut := func(h inspect.Holder) bool { return string(h.Lease) == a.ended }
	isRevoked := func(h inspect.Holder) bool { return h.Kind == inspect.HolderRevoked }
	switch kind := kindOf(a.did); {
	case kind == Revoke && slices.ContainsFunc(p.Holders, isRevoked):
		p.Notice = "A lease is revoked. The next holder gets the lock when the lease would have ended."
	case kind == FreeNow && leaseID.MatchString(a.ended) && !slices.ContainsFunc(p.Holders, isOut):
		p.Warning = "The lease " + short(a.ended) + " is no longer out. If its holder still runs, it may act beside the next holder until it is told."
	}
}

// leaseID matches an inspect.LeaseID.
var leaseID = regexp.MustCompile(`^[0-9a-f]{40}$`)

// showLast fills the page from the last list, because the lock could not be read.
func (p *lockPage) showLast(v view, key inspect.Key, err error) {
	p.Trouble, p.Lock = err.Error(), inspect.Lock{Key: key, Idempotent: isAttempt(key)}
	p.DataAt = time.Time{}
	if v.lists == nil {
		return
	}
	for _, row := range v.lists.rows {
		if row.Key == key {
			p.Lock, p.DataAt, p.DataAge = row.Lock, v.lists.at, time.Since(v.lists.at)
			p.Processes = v.lists.processes.Processes
		}
	}
}

// fill fills the rows from the lock.
func (p *lockPage) fill() {
	ids := make([]string, 0, len(p.Holders))
	for _, h := range p.Holders {
		row := holderRow{Holder: h, Held: -1, Link: processLink{Text: textOf(h.Kind)}, Risk: riskOf(h, inspect.Process{}, false)}
		if h.Process != "" {
			process, found := p.Process(h.Process)
			row.Risk = riskOf(h, process, found)
			row.Link = linkToProcess(h.Process, process, found)
			if hold, found := process.Hold(h.Lease); found {
				row.Name, row.Caller, row.Held, row.Since = hold.Name, hold.Caller, hold.For, time.Now().Add(-hold.For)
				p.Name = hold.Name
			}
		}
		ids = append(ids, string(h.Lease))
		p.Holds = append(p.Holds, row)
	}
	slices.Sort(ids) // the order of shared leases changes with each renewal
	p.LeaseIDs = strings.Join(ids, " ")
	for _, w := range p.Waiters {
		process, found := p.Process(w.Process)
		row := waiterRow{Waiter: w, Waited: -1, Link: linkToProcess(w.Process, process, found)}
		if wait, found := process.Wait(p.Key); found {
			row.Name, row.Caller, row.Waited, row.Requests = wait.Name, wait.Caller, wait.For, wait.Requests
			p.Name = cmp.Or(p.Name, wait.Name)
		}
		p.Queue = append(p.Queue, row)
	}
}

// linkToProcess returns the link to a process, whose record was found or not.
func linkToProcess(id string, p inspect.Process, found bool) processLink {
	if id == "" {
		return processLink{Text: "another program"}
	}
	if !found {
		return processLink{ID: id, IsSilent: true}
	}
	return processLink{ID: id, Text: serviceOf(p), IsSilent: p.Silent()}
}

// serviceOf says in words which process it is.
func serviceOf(p inspect.Process) string { return p.Service + " on " + p.Host }

// isAttempt reports whether the key is that of an idempotent request.
func isAttempt(key inspect.Key) bool {
	_, ok := key.EndpointKey()
	return ok
}

// readLock reads the lock of this key.
func (c *Console) readLock(ctx context.Context, key inspect.Key) (inspect.Lock, error) {
	for _, spelling := range []string{key.Name(), key.Raw()} { // another key may be spelled as this name
		lock, err := c.inspector.Lock(ctx, spelling)
		if err != nil || lock.Key == key {
			return lock, err
		}
	}
	return inspect.Lock{}, inspect.ErrNotFound
}

// unknownKey says that no list has a key with the digest of the address.
func (c *Console) unknownKey(w http.ResponseWriter, r *http.Request, v view) {
	switch {
	case v.lists == nil:
		page := &problemPage{frame: frame{Title: "No data yet"}}
		page.showState(v)
		c.render(w, r, http.StatusServiceUnavailable, "problem", page)
	case v.lists.locks.Truncated || v.lists.unknown.Truncated:
		c.problem(w, r, http.StatusNotFound, "No list has this digest, but the lists are not complete. Find the key or its digest with the field at the top: it looks through all keys.")
	default:
		c.problem(w, r, http.StatusNotFound, "Nobody holds a lock with this digest, and no unknown outcome has it. To see how a request has ended, find its key with the field at the top.")
	}
}
