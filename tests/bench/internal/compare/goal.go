package compare

import (
	"cmp"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/reqlock/reqlock/tests/bench/internal/report"
)

// A Goal compares a median with those of anchors in the same execution. The limit is Times the
// anchor, plus Plus. Without either, the row only shows both values.
type Goal struct {
	Case        string
	Reached     Cell
	Anchors     []Cell // the best one counts; what an anchor leaves out is that of Reached
	Times, Plus float64
	AtMost      bool // less is better
}

// A Cell is a median in the table of a suite.
type Cell struct{ Suite, Contestant, Figure string }

// in returns the cell as a figure, whose value is NaN if there is none.
func (c Cell) in(results []*Results) report.Figure {
	for _, r := range results {
		for i, column := range r.columns() {
			if r.suite.Name == c.Suite && column.Name == c.Figure {
				if column.Value = r.median(c.Contestant, i); math.IsInf(column.Value, 0) {
					column.Value = math.NaN() // a cost of each lock, where there was no lock
				}
				return column
			}
		}
	}
	return report.Figure{Name: c.Figure, Value: math.NaN(), Text: report.Number}
}

// PrintGoals prints a table of the goals whose suites are among the results.
func PrintGoals(w io.Writer, goals []Goal, results []*Results) {
	table := report.Table{Left: 2}
	table.Row("goals", "figure", "reached", "anchor", "its value", "ratio", "limit", "")
	shown := false
	for _, g := range goals {
		if slices.ContainsFunc(results, func(r *Results) bool { return r.suite.Name == g.Reached.Suite }) {
			table.Row(g.row(results)...)
			shown = true
		}
	}
	if shown {
		table.Print(w)
	}
}

// row returns the cells of the goal's row.
func (g Goal) row(results []*Results) []string {
	reached := g.Reached.in(results)
	name, anchor := g.anchor(results)
	limit, bound := "", g.Plus
	if g.Times != 0 {
		limit, bound = times(g.Times), g.Times*anchor+g.Plus
	}
	if g.Plus != 0 && limit != "" {
		limit += " + "
	}
	if g.Plus != 0 {
		limit += reached.Text(g.Plus)
	}
	result, sign := "missed", ">= "
	if g.isBetter(reached.Value, bound) {
		result = "held"
	}
	if g.AtMost {
		sign = "<= "
	}
	if limit == "" {
		result, sign = "", ""
	}
	return []string{g.Case, reached.Name, reached.Text(reached.Value), name, reached.Text(anchor), times(reached.Value / anchor), sign + limit, result}
}

// anchor returns the name and the value of the best anchor.
func (g Goal) anchor(results []*Results) (name string, value float64) {
	value = math.NaN()
	for _, a := range g.Anchors {
		a = Cell{cmp.Or(a.Suite, g.Reached.Suite), cmp.Or(a.Contestant, g.Reached.Contestant), cmp.Or(a.Figure, g.Reached.Figure)}
		if v := a.in(results).Value; math.IsNaN(value) || g.isBetter(v, value) {
			name, value = a.Contestant, v
			if a.Suite != g.Reached.Suite {
				name += " in " + a.Suite
			}
		}
	}
	return name, value
}

// isBetter reports whether a value is known, and as good as another one.
func (g Goal) isBetter(value, than float64) bool {
	return value == than || value < than == g.AtMost && !math.IsNaN(value-than)
}

// times returns a ratio as text.
func times(ratio float64) string {
	if math.IsNaN(ratio) {
		return "-"
	}
	return strconv.FormatFloat(ratio, 'g', 3, 64) + "x"
}
