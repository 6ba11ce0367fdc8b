package compare

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/reqlock/reqlock/tests/bench/internal/measure"
	"github.com/reqlock/reqlock/tests/bench/internal/report"
)

// Results are the figures of all runs of a suite.
type Results struct {
	suite Suite
	runs  map[string][][]report.Figure // by contestant
}

// columns returns the figures of any run, for their names and units.
func (r *Results) columns() []report.Figure {
	for _, runs := range r.runs {
		return runs[0]
	}
	return nil
}

// median returns the median of a column over all runs of a contestant, or NaN.
func (r *Results) median(contestant string, column int) float64 {
	var values []float64
	for _, figures := range r.runs[contestant] {
		values = append(values, figures[column].Value)
	}
	return measure.Median(values)
}

// Print prints a table of the medians.
func (r *Results) Print(w io.Writer) {
	fmt.Fprintf(w, "%s: %s\n", r.suite.Name, r.suite.Title)
	table := report.Table{Left: 1}
	columns := r.columns()
	head := []string{""}
	for i, column := range columns {
		head = append(head, column.Name)
		if i == 0 && r.suite.Baseline != nil {
			head = append(head, "share")
		}
	}
	table.Row(head...)
	for _, contestant := range r.suite.Contestants {
		row := []string{contestant}
		for i, column := range columns {
			row = append(row, column.Text(r.median(contestant, i)))
			if i == 0 && r.suite.Baseline != nil {
				row = append(row, report.Percent(r.median(contestant, 0)/r.median(r.suite.Baseline(contestant), 0)))
			}
		}
		table.Row(row...)
	}
	table.Print(w)
}

// WritePicture draws the picture of the suite into a directory, if it has one.
func (r *Results) WritePicture(dir string) error {
	p := r.suite.Picture
	if p.File == "" || len(r.runs) == 0 {
		return nil
	}
	var bars []report.Bar
	for i, column := range r.columns() {
		if column.Name != p.Figure {
			continue
		}
		for j, contestant := range r.suite.Contestants {
			if value := r.median(contestant, i); !math.IsNaN(value) {
				bars = append(bars, report.Bar{Label: contestant, Value: value, Text: column.Text(value), IsOurs: j == 0})
			}
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // pictures are for everybody
		return err
	}
	return os.WriteFile(filepath.Join(dir, p.File+".svg"), []byte(report.Chart(p.Title, p.Note, bars)), 0o644) //nolint:gosec // as above
}
