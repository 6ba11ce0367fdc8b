package console

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/reqlock/reqlock/inspect"
)

const (
	// maxRows is how many locks or records a page lists.
	maxRows = 200
	// firstOutcomes is how many of the unknown outcomes the overview lists.
	firstOutcomes = 5
)

// A lockRow is a lock in a list.
type lockRow struct {
	inspect.Lock

	Digest, Name string
	Raw          string        // the key with WithRawKeys
	Processes    []processLink // the first ones of the holders
	Held         time.Duration // -1 if not known
	Requests     int           // that wait, of registered processes
}

// Left returns how long its first lease lasts without a renewal.
func (r lockRow) Left() time.Duration { return r.Holders[0].LeaseLeft }

// More returns how many holders are not in Processes.
func (r lockRow) More() int { return len(r.Holders) - len(r.Processes) }

// Share returns which kind of lease it is, unless it is the usual one.
func (r lockRow) Share() string {
	switch {
	case !r.Shared:
		return ""
	case r.Holders[0].Permits > 0:
		return fmt.Sprintf("%d of %d permits", len(r.Holders), r.Holders[0].Permits)
	default:
		return count(len(r.Holders), "reader", "readers")
	}
}

// A processLink names a process in a page.
type processLink struct {
	ID       string // "" if the lease is none of a process
	Text     string
	IsSilent bool
}

// linkTo returns the link to a process, with what the process says of itself.
func (l *lists) linkTo(id string) processLink {
	if link, found := l.links[id]; found {
		return link
	}
	return processLink{ID: id, IsSilent: id != "" && !l.processes.Truncated}
}

// linkToHolder returns the link to the process that has a lease, or says why no process has it.
func (l *lists) linkToHolder(h inspect.Holder) processLink {
	if h.Process != "" {
		return l.linkTo(h.Process)
	}
	return processLink{Text: textOf(h.Kind)}
}

// textOf says who has a lease that no process has.
func textOf(kind inspect.HolderKind) string {
	switch kind {
	case inspect.HolderRevoked:
		return "nobody: revoked"
	case inspect.HolderMinHold:
		return "nobody: minimal hold"
	case inspect.HolderForeign:
		return "another program"
	default:
		return ""
	}
}

// A summary has the numbers at the top of the overview.
type summary struct {
	Held, Unknown     int
	Processes, Silent int // that are registered; Processes without the silent ones
	Waiting, Requests int // processes and their requests
	Wanted            int // the locks for which they wait
	Longest           time.Duration
	LongestDigest     string
	LongestName       string
}

// sum returns the summary of the lists.
func (l *lists) sum() summary {
	s := summary{Held: len(l.rows), Unknown: len(l.unknown.Records)}
	for _, row := range l.rows {
		if s.Waiting += row.Waiting; row.Waiting > 0 {
			s.Wanted++
		}
		if row.Held > s.Longest {
			s.Longest, s.LongestDigest, s.LongestName = row.Held, row.Digest, row.Name
		}
	}
	for _, p := range l.processes.Processes {
		if p.Silent() {
			s.Silent++
			continue
		}
		s.Processes++
		s.Requests += p.Waiting
	}
	return s
}

// sample returns the numbers for the charts.
func (l *lists) sample() sample {
	s := l.sum()
	return sample{l.at, [...]int{s.Held, max(s.Waiting, s.Requests), s.Unknown}}
}

type overviewPage struct {
	frame
	summary

	Charts     []chart
	Minutes    int // what the charts cover
	First      []recordRow
	Locks      []lockRow
	Found, All int // how many locks the filter has found, and how many there are
	Scan       inspect.Scan
	MoreOpen   bool // the list of unknown outcomes is not complete
	Query      string
}

// showOverview serves the numbers, the charts, the oldest unknown outcomes and the locks.
func (c *Console) showOverview(w http.ResponseWriter, r *http.Request) {
	v := c.board.look(r.Context())
	page := &overviewPage{frame: frame{Title: "Overview", Nav: "overview", Polls: true}, Charts: v.charts, Minutes: int(v.covers.Minutes()), Query: strings.TrimSpace(r.URL.Query().Get("q"))}
	page.showState(v)
	if v.lists == nil {
		c.render(w, r, http.StatusServiceUnavailable, "overview", page)
		return
	}
	page.summary = v.lists.sum()
	page.Said = fmt.Sprintf("%s, %s, %s", count(page.Held, "lock held", "locks held"),
		count(max(page.Waiting, page.Requests), "waits", "wait"), count(page.Unknown, "unknown outcome", "unknown outcomes"))
	page.MoreOpen = v.lists.unknown.Truncated
	page.First = c.records(v.lists, firstOutcomes)
	page.Scan, page.All = v.lists.locks, len(v.lists.rows)
	for _, row := range v.lists.rows {
		if v.lists.matches(row, page.Query) {
			if page.Found++; page.Found <= maxRows {
				page.Locks = append(page.Locks, c.now(row, v.lists))
			}
		}
	}
	c.render(w, r, http.StatusOK, "overview", page)
}

// newRow returns the row of a lock.
func (l *lists) newRow(lock inspect.Lock) lockRow {
	row := lockRow{Lock: lock, Digest: lock.Key.String(), Held: -1}
	for _, h := range lock.Holders {
		if hold, isKnown := l.holds[h.Lease]; isKnown {
			row.Name, row.Held = cmp.Or(row.Name, hold.name), max(row.Held, hold.since)
		}
	}
	wait := l.waits[row.Digest]
	row.Name, row.Requests = cmp.Or(row.Name, wait.name), wait.requests
	for _, h := range lock.Holders[:min(2, len(lock.Holders))] {
		row.Processes = append(row.Processes, l.linkToHolder(h))
	}
	return row
}

// now returns the row of a list as a page shows it now.
func (c *Console) now(row lockRow, l *lists) lockRow {
	if row.Raw = c.raw(row.Key); row.Held >= 0 {
		row.Held += time.Since(l.at)
	}
	return row
}

// matches reports whether the filter of the page keeps the row. It does not look at the key: what is typed
// into the filter becomes a part of the address.
func (l *lists) matches(row lockRow, query string) bool {
	query = strings.ToLower(query)
	return strings.HasPrefix(row.Digest, query) || strings.Contains(strings.ToLower(row.Name), query) ||
		slices.ContainsFunc(row.Holders, func(h inspect.Holder) bool {
			return h.Process != "" && (strings.HasPrefix(h.Process, query) || strings.Contains(strings.ToLower(l.links[h.Process].Text), query))
		})
}

// raw returns the key as the pages show it: "" without WithRawKeys.
func (c *Console) raw(key inspect.Key) string {
	if !c.rawKeys {
		return ""
	}
	return key.Raw()
}
