package load

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Requests are all requests of a run, and their answers.
type requests struct {
	all        []*request
	byName     map[string]*request
	started    chan struct{}
	gateOpened time.Time // when the gate was opened

	answered atomic.Int64
	answers  []answer // in the order of the requests
	done     sync.WaitGroup
}

// newRequests makes n requests, perAccount for each account: two with a long wait; two
// copies with one idempotency key, on different instances; and one with a short wait.
func newRequests(n int, services []*instance) *requests {
	c := &requests{byName: map[string]*request{}, started: make(chan struct{}), answers: make([]answer, n)}
	accounts := n / perAccount
	for i := range n {
		account, group := i%accounts, i/accounts
		s := services[(account+group)%len(services)]
		r := &request{name: fmt.Sprintf("request-%d", i), wait: longWait, started: c.started}
		route := longWaitRoute
		switch group {
		case 2, 3:
			route, r.once = idempotentRoute, fmt.Sprintf("once-%d", account)
		case 4:
			route, r.wait = shortWaitRoute, shortWait
		}
		// Copies differ only in the header that identifies them.
		path := strings.Replace(strings.TrimPrefix(route, "POST "), "{account}", fmt.Sprint(account), 1)
		r.url = s.http.URL + path
		c.all = append(c.all, r)
		c.byName[r.name] = r
	}
	return c
}

func (c *requests) send(b *httpClient) {
	for i, r := range c.all {
		c.done.Go(func() {
			c.answers[i] = r.send(&b.Client)
			c.answered.Add(1)
		})
	}
	close(c.started)
}

// sendDuringOutage sends some more requests while Redis is dead. It returns when they have
// been refused.
func (c *requests) sendDuringOutage(t *testing.T, b *httpClient, services []*instance) {
	t.Helper()
	const count = 10
	answers := make([]answer, count)
	var done sync.WaitGroup
	for i := range answers {
		name := fmt.Sprintf("during-outage-%d", i)
		r := &request{name: name, url: services[i%len(services)].http.URL + "/short-wait/" + name, wait: shortWait, started: c.started}
		done.Go(func() { answers[i] = r.send(&b.Client) })
	}
	done.Wait()
	for i := range answers {
		a := &answers[i]
		if fault := a.fault(&facts{gateOpened: c.gateOpened}); fault != "" || a.code != "unavailable" {
			t.Errorf("while Redis is dead: %s %s %q", fault, a.kind(), a.body)
		}
	}
}

// awaitAnswers returns after that many more answers.
func (c *requests) awaitAnswers(t *testing.T, more int) {
	t.Helper()
	n := int(c.answered.Load()) + more
	await(t, "answers", func() string {
		if got := c.answered.Load(); got < int64(n) {
			return fmt.Sprintf("%d of %d", got, n)
		}
		return ""
	})
}

// table describes the number of answers of each kind, and the longest time without an
// answer.
func (c *requests) table() string {
	kinds := map[string]int{}
	times := []time.Time{c.gateOpened}
	for i := range c.answers {
		kinds[c.answers[i].kind()]++
		times = append(times, c.answers[i].at)
	}
	slices.SortFunc(times, time.Time.Compare)
	var gap time.Duration
	for i := range times[1:] {
		gap = max(gap, times[i+1].Sub(times[i]))
	}
	var text strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		fmt.Fprintf(&text, "%d of %q, ", kinds[kind], kind)
	}
	fmt.Fprintf(&text, "the last after %v, the longest time without one %v",
		times[len(times)-1].Sub(c.gateOpened).Round(time.Millisecond), gap.Round(time.Millisecond))
	return text.String()
}
