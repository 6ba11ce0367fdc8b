package catalogue

import (
	"errors"
	"fmt"
	"slices"
)

// Check reports all contradictions between rows and proofs: a row without a test, a proof
// of an unknown row or of a row that does not apply, and a kind that differs between a row
// and its proofs.
func Check(groups []Group, proofs []Proof) error {
	var wrong []error
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	rows := rowsOf(groups)
	for i, row := range rows {
		if row.Number != i+1 {
			say("row %d is number %d", row.Number, i+1)
		}
		if (row.kind() == Holds) != (row.Guard == "") {
			say("row %d %s, and its guard is %q", row.Number, row.kind().description(), row.Guard)
		}
		shown := ofRow(proofs, row.Number)
		switch like := func(p Proof) bool { return p.Kind == row.kind() }; {
		case row.kind() == Absent && len(shown) > 0:
			say("row %d does not apply, and %s shows it", row.Number, shown[0].Name())
		case row.kind() != Absent && len(shown) == 0:
			say("row %d has no test", row.Number)
		case row.kind() != Absent && !slices.ContainsFunc(shown, like):
			say("row %d is %q, and no test of it says so", row.Number, row.kind())
		}
	}
	for _, proof := range proofs {
		i := slices.IndexFunc(rows, func(r Row) bool { return r.Number == proof.Row })
		switch {
		case i < 0:
			say("%s shows row %d, which there is not", proof.Name(), proof.Row)
		case proof.Kind != Holds && proof.Kind != rows[i].kind():
			say("%s shows row %d as %q, and the row is %q", proof.Name(), proof.Row, proof.Kind, rows[i].kind())
		}
	}
	return errors.Join(wrong...)
}

// ofRow returns the proofs of a row.
func ofRow(proofs []Proof, row int) []Proof {
	var shown []Proof
	for _, proof := range proofs {
		if proof.Row == row {
			shown = append(shown, proof)
		}
	}
	return shown
}
