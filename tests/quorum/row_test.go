package quorum

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
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

// inject injects the faults, one after the other.
func (r row) inject(n nodes) {
	for _, one := range r {
		one.inject(n[one.node])
	}
}

// repair repairs the nodes.
func (r row) repair(n nodes) {
	for _, one := range r {
		one.repair(n[one.node])
	}
}

// permanent returns how many nodes fail until the repair.
func (r row) permanent() (n int) {
	for _, one := range r {
		if !one.isTransient {
			n++
		}
	}
	return n
}

// restartCount returns how many nodes restart.
func (r row) restartCount() (n int) {
	for _, one := range r {
		if one.restarts {
			n++
		}
	}
	return n
}

// subsets returns all sets of n nodes.
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

// pairs returns all pairs of faults, in both orders.
func pairs() (pairs [][2]fault) {
	for _, f := range faults() {
		for _, g := range faults() {
			pairs = append(pairs, [2]fault{f, g})
		}
	}
	return pairs
}

// minorities returns all rows in which at most two nodes fail.
func minorities() []row {
	rows := []row{{}}
	for node := range nodeCount {
		for _, f := range faults() {
			rows = append(rows, row{{node, f}})
		}
	}
	for _, set := range subsets(2) {
		for _, p := range pairs() {
			rows = append(rows, row{{set[0], p[0]}, {set[1], p[1]}})
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

// The partial tables contain each combination of faults and each set of nodes.
func TestTablesAreComplete(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		rows                 []row
		least, most          int // nodes that fail
		size, faults, places int // how many rows, combinations of faults, and sets of nodes
	}{
		"all minorities":  {minorities(), 0, majority - 1, 1 + 5*5 + 10*25, 1 + 5 + 25, 1 + 5 + 10},
		"some minorities": {someMinorities(), 0, majority - 1, 1 + 5 + 25, 1 + 5 + 25, 1 + 5 + 10},
		"all majorities":  {majorities(), majority, nodeCount, 10*5 + 8, 5 + 8, 10 + 2},
		"some majorities": {someMajorities(), majority, nodeCount, 10 + 8, 5 + 8, 10 + 2},
	} {
		names, faults, places := map[string]bool{}, map[string]bool{}, map[string]bool{}
		for _, r := range test.rows {
			var failed, where string
			nodes := map[int]bool{}
			for _, one := range r {
				failed, where, nodes[one.node] = failed+one.name+", ", where+fmt.Sprint(one.node), true
			}
			names[r.String()], faults[failed], places[where] = true, true, true
			if len(nodes) != len(r) || len(r) < test.least || len(r) > test.most {
				t.Errorf("%s: %v", name, r)
			}
		}
		if len(names) != test.size || len(faults) != test.faults || len(places) != test.places {
			t.Errorf("%s: %d rows, %d combinations of faults, %d sets of nodes; want %d, %d, %d", name,
				len(names), len(faults), len(places), test.size, test.faults, test.places)
		}
	}
}
