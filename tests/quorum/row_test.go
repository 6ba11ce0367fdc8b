package quorum

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// A row is what happens to the nodes, each with its own number.
type row []illness

// An illness is what happens to one of them.
type illness struct {
	node int
	fault
}

// String names the row.
func (r row) String() string {
	if len(r) == 0 {
		return "all are well"
	}
	var words []string
	for _, one := range r {
		words = append(words, fmt.Sprintf("%d %s", one.node, one.name))
	}
	return strings.Join(words, ", ")
}

// strike makes the nodes ill, one after the other.
func (r row) strike(n nodes) {
	for _, one := range r {
		one.strike(n[one.node])
	}
}

// mend makes them well.
func (r row) mend(n nodes) {
	for _, one := range r {
		one.mend(n[one.node])
	}
}

// lasting returns how many of the nodes are ill until they are mended.
func (r row) lasting() (n int) {
	for _, one := range r {
		if !one.heals {
			n++
		}
	}
	return n
}

// subsets returns all sets of so many nodes.
func subsets(n int) (sets [][]int) {
	for bits := range 1 << size {
		var set []int
		for node := range size {
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

// minorities are all rows in which a majority is well.
func minorities() []row {
	rows := []row{{}}
	for node := range size {
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

// someMinorities are some of them: in each run others. Each fault and each pair of
// faults is in them, and each two nodes are ill together.
func someMinorities() []row {
	rows := []row{{}}
	first := rand.IntN(size)
	for i, f := range faults() {
		rows = append(rows, row{{(first + i) % size, f}})
	}
	sets := subsets(2)
	first = rand.IntN(len(sets))
	for i, p := range pairs() {
		set := sets[(first+i)%len(sets)]
		rows = append(rows, row{{set[0], p[0]}, {set[1], p[1]}})
	}
	return rows
}

// majorities are the rows in which no majority is well: each fault on each three
// nodes, and mixed ones.
func majorities() []row {
	rows := mixedMajorities()
	for _, set := range subsets(majority) {
		for _, f := range faults() {
			rows = append(rows, row{{set[0], f}, {set[1], f}, {set[2], f}})
		}
	}
	return rows
}

// someMajorities are some of them: in each run others. Each fault and each three
// nodes are in them.
func someMajorities() []row {
	rows, all := mixedMajorities(), faults()
	first := rand.IntN(len(all))
	for i, set := range subsets(majority) {
		f := all[(first+i)%len(all)]
		rows = append(rows, row{{set[0], f}, {set[1], f}, {set[2], f}})
	}
	return rows
}

// mixedMajorities are three nodes with different faults, and more than three.
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

// The tables have all that they should have, and those of a short run all faults,
// and all nodes together that can be.
func TestTheRowsAreWhole(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		rows                 []row
		least, most          int // nodes that are ill
		size, faults, places int
	}{
		"all minorities":  {minorities(), 0, majority - 1, 1 + 5*5 + 10*25, 1 + 5 + 25, 1 + 5 + 10},
		"some minorities": {someMinorities(), 0, majority - 1, 1 + 5 + 25, 1 + 5 + 25, 1 + 5 + 10},
		"all majorities":  {majorities(), majority, size, 10*5 + 8, 5 + 8, 10 + 2},
		"some majorities": {someMajorities(), majority, size, 10 + 8, 5 + 8, 10 + 2},
	} {
		names, faults, places := map[string]bool{}, map[string]bool{}, map[string]bool{}
		for _, r := range test.rows {
			var ill, where string
			nodes := map[int]bool{}
			for _, one := range r {
				ill, where, nodes[one.node] = ill+one.name+", ", where+fmt.Sprint(one.node), true
			}
			names[r.String()], faults[ill], places[where] = true, true, true
			if len(nodes) != len(r) || len(r) < test.least || len(r) > test.most {
				t.Errorf("%s: %v", name, r)
			}
		}
		if len(names) != test.size || len(faults) != test.faults || len(places) != test.places {
			t.Errorf("%s: %d rows, %d combinations of faults, %d of nodes; want %d, %d, %d", name,
				len(names), len(faults), len(places), test.size, test.faults, test.places)
		}
	}
}
