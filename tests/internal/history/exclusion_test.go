package history_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/internal/history"
)

func TestMain(m *testing.M) { suite.Main(m) }

// held returns an exclusive hold of the key "k" with a fence. Each holder has a lease of its own.
func held(holder string, from, to time.Duration, fence int64) *history.Hold {
	return &history.Hold{Key: "k", Holder: holder, Episode: holder, Asked: 1, Granted: from, Ended: to, Left: to, Fence: fence}
}

func with(one *history.Hold, change func(*history.Hold)) *history.Hold {
	change(one)
	return one
}

func shared(holder string, from, to time.Duration, fence int64, limit int) *history.Hold {
	return with(held(holder, from, to, fence), func(h *history.Hold) { h.Limit = limit })
}

func killed(h *history.Hold)       { h.Killed = true }
func informed(h *history.Hold)     { h.Lost = true }
func unfenced(h *history.Hold)     { h.Unfenced = true }
func ofOtherKey(h *history.Hold)   { h.Key = "other" }
func ofFirstLease(h *history.Hold) { h.Episode = "a" }

func staying(left time.Duration) func(*history.Hold) {
	return func(h *history.Hold) { h.Left = left }
}

// violations returns the names of the checks that find a violation, as often as they do.
func violations(h history.Holds) string {
	var names []string
	for name, found := range map[string][]string{
		"exclusion": h.Exclusion(), "limits": h.Limits(), "encounters": h.Encounters(),
		"fences": h.Fences(), "leaseFences": h.LeaseFences(), "service": h.Service(time.Hour),
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
	const all = history.Unlimited
	for name, test := range map[string]struct {
		holds history.Holds
		want  string
	}{
		"one after the other":      {history.Holds{held("a", 10, 20, 1), held("b", 21, 30, 2)}, ""},
		"an end at the next grant": {history.Holds{held("a", 10, 20, 1), held("b", 20, 30, 2)}, ""},
		"an end after the next grant": {
			history.Holds{held("a", 10, 21, 1), held("b", 20, 30, 2)}, "encounters exclusion",
		},
		"an end after two grants": {
			history.Holds{held("a", 10, 31, 1), held("b", 20, 30, 2), held("c", 30, 40, 3)}, "encounters encounters exclusion exclusion",
		},
		"two grants at one time": {history.Holds{held("a", 10, 20, 1), held("b", 10, 20, 2)}, "encounters exclusion"},
		"a holder killed after the next grant": {
			history.Holds{with(held("a", 10, 21, 1), killed), held("b", 20, 30, 2)}, "exclusion",
		},
		"a holder that was not informed stays after its lease": {
			history.Holds{with(held("a", 10, 20, 1), staying(23)), held("b", 22, 30, 2)}, "encounters",
		},
		"a holder that was informed stays after its lease": {
			history.Holds{with(with(held("a", 10, 20, 1), staying(23)), informed), held("b", 22, 30, 2)}, "",
		},
		"holds of two keys":                              {history.Holds{held("a", 10, 20, 1), with(held("b", 15, 20, 1), ofOtherKey)}, ""},
		"a hold that ended before its grant":             {history.Holds{held("a", 10, 20, 1), with(held("b", 15, 14, 0), informed)}, ""},
		"a hold that ended before its grant, uninformed": {history.Holds{held("a", 10, 20, 1), with(held("b", 15, 14, 0), staying(16))}, "encounters"},
		"a fence that falls":                             {history.Holds{held("a", 10, 20, 2), held("b", 20, 30, 1)}, "fences leaseFences"},
		"a fence given twice":                            {history.Holds{held("a", 10, 20, 1), held("b", 20, 30, 1)}, "fences leaseFences"},
		"a missing fence":                                {history.Holds{held("a", 10, 20, 1), held("b", 20, 30, 0)}, "fences leaseFences"},
		"a fence below an earlier one": {
			history.Holds{held("a", 10, 20, 9), held("b", 20, 30, 2), held("c", 30, 40, 10)}, "fences leaseFences",
		},
		"a hold without a fence": {history.Holds{held("a", 10, 20, 1), with(held("b", 20, 30, 0), unfenced), held("c", 30, 40, 2)}, ""},
		"two leases that are each passed on twice, in turns": {
			history.Holds{held("a", 10, 20, 1), held("b", 20, 30, 9), with(held("a2", 30, 40, 2), ofFirstLease)}, "fences",
		},
		"fences that fall within a lease": {history.Holds{held("a", 10, 20, 2), with(held("a2", 20, 30, 1), ofFirstLease)}, "fences leaseFences"},
		"a lease that began later with a lower fence": {
			history.Holds{held("a", 10, 20, 8), with(held("a2", 20, 30, 9), ofFirstLease), held("b", 30, 40, 7)}, "fences leaseFences",
		},
		"two readers with one fence": {history.Holds{shared("a", 10, 30, 1, all), shared("b", 20, 40, 1, all)}, ""},
		"two readers with a fence that falls": {
			history.Holds{shared("a", 10, 30, 2, all), shared("b", 20, 40, 1, all)}, "fences leaseFences",
		},
		"a reader with the fence of a writer": {history.Holds{held("a", 10, 20, 1), shared("b", 20, 30, 1, all)}, "fences leaseFences"},
		"a writer beside a reader":            {history.Holds{shared("a", 10, 30, 1, all), held("b", 20, 40, 2)}, "encounters exclusion"},
		"as many permits as the limit": {
			history.Holds{shared("a", 10, 30, 1, 2), shared("b", 20, 40, 1, 2), shared("c", 30, 40, 1, 2)}, "",
		},
		"one permit too many": {
			history.Holds{shared("a", 10, 31, 1, 2), shared("b", 20, 40, 1, 2), shared("c", 30, 40, 1, 2)}, "limits",
		},
		"permits within the higher of two limits": {
			history.Holds{shared("a", 10, 31, 1, 2), shared("b", 20, 40, 1, 3), shared("c", 30, 40, 1, 2)}, "",
		},
		"a permit beside a reader":    {history.Holds{shared("a", 10, 30, 1, all), shared("b", 20, 40, 1, 1)}, ""},
		"a permit beside a writer":    {history.Holds{held("a", 10, 30, 1), shared("b", 20, 40, 2, 1)}, "encounters exclusion"},
		"a caller that is not served": {history.Holds{{Key: "k", Holder: "late", Asked: 1}}, "service"},
		"a caller that was killed":    {history.Holds{{Key: "k", Asked: 1, Ended: 30, Killed: true}}, ""},
	} {
		if got := violations(test.holds); got != test.want {
			t.Errorf("%s: found %q, want %q", name, got, test.want)
		}
	}
}

func TestAViolationNamesItsHolds(t *testing.T) {
	t.Parallel()
	h := history.Holds{
		with(held("one", time.Second, 3*time.Second, 7), informed),
		held("two", 2*time.Second, 4*time.Second, 5),
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
