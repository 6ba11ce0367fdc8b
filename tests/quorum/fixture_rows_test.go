package quorum

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A row is the faults of some nodes.
type row []nodeFault

// A nodeFault is the fault of the node with this index.
type nodeFault struct {
	node int
	fault
}

// String names the row.
func (r row) String() string {
	if len(r) == 0 {
		return "no fault"
	}
	var names []string
	for _, one := range r {
		names = append(names, fmt.Sprintf("%d %s", one.node, one.name))
	}
	return strings.Join(names, ", ")
}

func (r row) inject(n nodes) {
	for _, one := range r {
		one.inject(n[one.node])
	}
}

func (r row) repair(n nodes) {
	for _, one := range r {
		one.repair(n[one.node])
	}
}

func (r row) permanent() (n int) {
	for _, one := range r {
		if !one.isTransient {
			n++
		}
	}
	return n
}

func (r row) restartCount() (n int) {
	for _, one := range r {
		if one.restarts {
			n++
		}
	}
	return n
}

func subsets(n int) (sets [][]int) {
	for bits := range 1 << nodeCount {
		var set []int
		for node := range nodeCount {
			if bits>>node&1 == 1 {
				set = append(set, node)
			}
		}
		if len(set) == n {
			sets = append(sets, set)
		}
	}
	return sets
}

// pairs returns each pair of faults, in one order.
func pairs() (pairs [][2]fault) {
	all := faults()
	for i, f := range all {
		for _, g := range all[i:] {
			pairs = append(pairs, [2]fault{f, g})
		}
	}
	return pairs
}

func minorities() []row {
	rows := []row{{}}
	for node := range nodeCount {
		for _, f := range faults() {
			rows = append(rows, row{{node, f}})
		}
	}
	for _, set := range subsets(2) {
		for _, f := range faults() {
			for _, g := range faults() {
				rows = append(rows, row{{set[0], f}, {set[1], g}})
			}
		}
	}
	return rows
}

// someMinorities returns some of these rows, which differ from run to run. They contain
// each fault, each pair of faults, and each pair of nodes.
func someMinorities() []row {
	rows := []row{{}}
	first := rand.IntN(nodeCount)
	for i, f := range faults() {
		rows = append(rows, row{{(first + i) % nodeCount, f}})
	}
	sets := subsets(2)
	first = rand.IntN(len(sets))
	for i, p := range pairs() {
		if rand.IntN(2) == 1 {
			p[0], p[1] = p[1], p[0]
		}
		set := sets[(first+i)%len(sets)]
		rows = append(rows, row{{set[0], p[0]}, {set[1], p[1]}})
	}
	return rows
}

// majorities returns the rows in which at least three nodes fail: each fault on each set
// of three nodes, and mixed faults.
func majorities() []row {
	rows := mixedMajorities()
	for _, set := range subsets(majority) {
		for _, f := range faults() {
			rows = append(rows, row{{set[0], f}, {set[1], f}, {set[2], f}})
		}
	}
	return rows
}

// someMajorities returns some of these rows, which differ from run to run. They contain
// each fault and each set of three nodes.
func someMajorities() []row {
	rows, all := mixedMajorities(), faults()
	first := rand.IntN(len(all))
	for i, set := range subsets(majority) {
		f := all[(first+i)%len(all)]
		rows = append(rows, row{{set[0], f}, {set[1], f}, {set[2], f}})
	}
	return rows
}

// mixedMajorities returns rows with different faults of three nodes, and with faults of
// more than three nodes.
func mixedMajorities() []row {
	return []row{
		{{0, killed}, {2, stopped}, {4, cut}},
		{{0, restarted}, {1, delayed}, {2, stopped}},
		{{1, restarted}, {2, restarted}, {3, cut}},
		{{1, delayed}, {3, delayed}, {4, killed}},
		{{0, killed}, {1, restarted}, {2, cut}, {3, stopped}},
		{{0, stopped}, {1, stopped}, {2, stopped}, {3, stopped}, {4, stopped}},
		{{0, killed}, {1, killed}, {2, killed}, {3, killed}, {4, killed}},
		{{0, restarted}, {1, restarted}, {2, restarted}, {3, restarted}, {4, restarted}},
	}
}

// soakEnv is how long all rows run, again and again, such as "10m".
const soakEnv = "REQLOCK_SOAK"

// deployments is how many deployments run rows at the same time. The rows mostly wait,
// but on an overloaded machine nodes seem to fail.
const deployments = 4

// runRows runs one subtest for each of some rows, or for each of all rows if soakEnv is
// set. The fast tier runs only few of the rows, chosen at random among those without a
// restart, and skips the others.
func runRows(t *testing.T, all, some []row, few int, test func(d *deployment, t *testing.T, name string, r row)) {
	t.Helper()
	duration := suite.Duration(t, soakEnv, 0)
	rows := some
	switch {
	case duration > 0:
		rows = all
	case !suite.IsFull():
		rand.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		// A node that restarts takes part again only after its quarantine, which takes long.
		slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.restartCount(), b.restartCount()) })
		for _, r := range rows[few:] {
			t.Run(r.String(), func(t *testing.T) { suite.Full(t, "is one of all combinations of faults") })
		}
		rows = rows[:few]
	}
	var group sync.WaitGroup
	numbers := make(chan int)
	for range min(deployments, len(rows)) {
		d := newDeployment(t, 3)
		group.Go(func() {
			for i := range numbers {
				r := rows[i%len(rows)]
				t.Run(r.String(), func(t *testing.T) { test(d, t, fmt.Sprintf("row%d", i), r) })
			}
		})
	}
	end := time.Now().Add(duration)
	for i := 0; i < len(rows) || time.Now().Before(end); i++ {
		numbers <- i
	}
	close(numbers)
	group.Wait()
}
