package history_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/internal/history"
)

func TestMain(m *testing.M) { suite.Main(m) }

// valid returns a history without a violation: two processes have two leases each, with
// three holds in each lease.
func valid() (h history.Holds) {
	for i := range 12 {
		at := time.Duration(10 * (i + 1))
		h = append(h, &history.Hold{
			Key: "k", Holder: "caller", Process: i / 3 % 2, Lease: int64(i / 6),
			Asked: at - 5, Granted: at, Ended: at + 9, Fence: int64(100*(i/3) + i%3),
		})
	}
	return h
}

// shared returns a hold of a lease of its own.
func shared(from, to time.Duration, fence int64, limit int) *history.Hold {
	return &history.Hold{
		Key: "k", Holder: "caller", Process: 7, Lease: int64(from), Asked: from - 5, Granted: from, Ended: to, Fence: fence, Limit: limit,
	}
}

// violations returns the names of the checks that find a violation, with how often.
func violations(h history.Holds) string {
	var names []string
	for name, found := range map[string][]string{
		"exclusion":   h.Exclusion(),
		"limits":      h.Limits(),
		"fences":      h.Fences(),
		"leaseFences": h.LeaseFences(),
		"service":     h.Service(time.Hour),
	} {
		for range found {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestChecksFindEachViolation(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(h history.Holds) history.Holds
		want   string
	}{
		"none":                   {func(h history.Holds) history.Holds { return h }, ""},
		"an end at the next":     {func(h history.Holds) history.Holds { h[5].Ended = h[6].Granted; return h }, ""},
		"an end after the next":  {func(h history.Holds) history.Holds { h[5].Ended = h[6].Granted + 1; return h }, "exclusion"},
		"an end after two holds": {func(h history.Holds) history.Holds { h[5].Ended = h[7].Granted + 1; return h }, "exclusion exclusion"},
		"two grants at one time": {func(h history.Holds) history.Holds { h[6].Granted = h[5].Granted; return h }, "exclusion"},
		"a kill inside another": {func(h history.Holds) history.Holds {
			h[5].Ended, h[5].Killed = h[6].Granted+1, true
			return h
		}, "exclusion"},
		"an overlap of two keys": {func(h history.Holds) history.Holds {
			return append(h, &history.Hold{Key: "other", Granted: h[5].Granted, Ended: h[5].Ended, Unfenced: true})
		}, ""},
		"a hold that ended before its grant": {func(h history.Holds) history.Holds {
			return append(h, &history.Hold{Key: "k", Granted: h[9].Granted + 1, Ended: h[9].Granted, Fence: 1})
		}, ""},
		"a fence that falls":       {func(h history.Holds) history.Holds { h[5].Fence = h[4].Fence - 1; return h }, "fences leaseFences"},
		"a fence given twice":      {func(h history.Holds) history.Holds { h[5].Fence = h[4].Fence; return h }, "fences leaseFences"},
		"a missing fence":          {func(h history.Holds) history.Holds { h[5].Fence = 0; return h }, "fences leaseFences"},
		"a fall after the highest": {func(h history.Holds) history.Holds { h[4].Fence = 150; return h }, "fences leaseFences"},
		"a hold without fences": {func(h history.Holds) history.Holds {
			return append(h, &history.Hold{Key: "k", Granted: 55, Ended: 55, Unfenced: true},
				&history.Hold{Key: "u", Granted: 1, Ended: 2, Lease: 1, Fence: 1},
				&history.Hold{Key: "u", Granted: 2, Ended: 3, Lease: 2, Unfenced: true})
		}, ""},
		"fences that start again with a lease": {func(h history.Holds) history.Holds {
			for i := range 3 {
				h[9+i].Fence = int64(i)
			}
			return h
		}, "fences fences fences leaseFences"},
		"a lease passed on after the next began": {func(h history.Holds) history.Holds {
			for i := range 2 {
				h[10+i].Process, h[10+i].Lease, h[10+i].Fence = h[8].Process, h[8].Lease, h[8].Fence+int64(i+1)
			}
			return h
		}, "fences fences"},
		"two readers at a time, with one fence": {func(h history.Holds) history.Holds {
			return append(h, shared(200, 220, 9000, history.Unlimited), shared(210, 230, 9000, history.Unlimited))
		}, ""},
		"two readers at a time, with fences that fall": {func(h history.Holds) history.Holds {
			return append(h, shared(200, 220, 9001, history.Unlimited), shared(210, 230, 9000, history.Unlimited))
		}, "fences leaseFences"},
		"a reader with the fence of a writer": {func(h history.Holds) history.Holds {
			return append(h, shared(200, 220, h[11].Fence, history.Unlimited))
		}, "fences leaseFences"},
		"a writer beside a reader": {func(h history.Holds) history.Holds {
			return append(h, shared(200, 220, 9000, history.Unlimited), shared(210, 230, 9001, 0))
		}, "exclusion"},
		"as many permits as the limit": {func(h history.Holds) history.Holds {
			return append(h, shared(200, 220, 9000, 2), shared(210, 230, 9000, 2), shared(220, 230, 9000, 2))
		}, ""},
		"one permit too many": {func(h history.Holds) history.Holds {
			return append(h, shared(200, 220, 9000, 2), shared(210, 230, 9000, 2), shared(219, 230, 9000, 2))
		}, "limits"},
		"permits within the higher of two limits": {func(h history.Holds) history.Holds {
			return append(h, shared(200, 220, 9000, 2), shared(210, 230, 9000, 3), shared(219, 230, 9000, 2))
		}, ""},
		"a permit beside a reader": {func(h history.Holds) history.Holds {
			return append(h, shared(200, 220, 9000, history.Unlimited), shared(210, 230, 9000, 1))
		}, ""},
		"a permit beside a writer": {func(h history.Holds) history.Holds {
			return append(h, shared(200, 220, 9000, 0), shared(210, 230, 9001, 1))
		}, "exclusion"},
		"a caller not served": {func(h history.Holds) history.Holds {
			return append(h, &history.Hold{Key: "k", Holder: "late", Asked: 1})
		}, "service"},
		"a caller killed while it waits": {func(h history.Holds) history.Holds {
			return append(h, &history.Hold{Key: "k", Asked: 1, Ended: 30, Killed: true})
		}, ""},
	} {
		if got := violations(test.change(valid())); got != test.want {
			t.Errorf("%s: found %q, want %q", name, got, test.want)
		}
	}
}

func TestAViolationNamesItsHolds(t *testing.T) {
	t.Parallel()
	h := history.Holds{
		{Key: "k", Holder: "one", Granted: time.Second, Ended: 3 * time.Second, Lost: true, Fence: 7},
		{Key: "k", Holder: "two", Granted: 2 * time.Second, Ended: 4 * time.Second, Fence: 5},
	}
	for got, want := range map[string]string{
		h.Exclusion()[0]: "k: two (2s to 4s) was granted 1s before the end of one (1s to 3s) (lost: false and true)",
		h.Fences()[0]:    "k: two (2s to 4s) has the fence 5 after the fence 7 of one (1s to 3s)",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestRecorderCollectsHolds(t *testing.T) {
	t.Parallel()
	r := history.NewRecorder()
	one := &history.Hold{Asked: r.Now()}
	if one.Asked == 0 || r.At(time.Now().Add(time.Hour)) < time.Hour {
		t.Errorf("asked at %v", one.Asked)
	}
	var group sync.WaitGroup
	group.Go(func() { r.Add(one) })
	group.Go(func() { r.Add(&history.Hold{}) })
	group.Wait()
	before := r.Holds()
	r.Update(func() { one.Granted = r.Now() })
	if len(before) != 2 || before[0].IsServed() || before[1].IsServed() {
		t.Errorf("a copy changes: %v", before)
	}
	if after := r.Take(); len(after) != 2 || !one.IsServed() || len(r.Holds()) != 0 {
		t.Errorf("took %v and left %v", after, r.Holds())
	}
}
