package catalogue_test

import (
	"strings"
	"testing"

	"github.com/reqlock/reqlock/tests/faults/internal/catalogue"
)

// rows returns three rows of one group. The fields of the second one are the parameter's.
func rows(second catalogue.Row) []catalogue.Group {
	second.Number = max(second.Number, 2)
	return []catalogue.Group{{Letter: "A", Title: "All", Rows: []catalogue.Row{
		{Number: 1, Trigger: "it breaks", Right: "it is mended"},
		second,
		{Number: 3, Trigger: "it is not there", Right: "it is", Kind: catalogue.Absent, Guard: "it is not needed"},
	}}}
}

// shown returns proofs of two rows. The second has a kind.
func shown(kind catalogue.Kind) []catalogue.Proof {
	return []catalogue.Proof{
		{Row: 1, Kind: catalogue.Holds, Test: "TestX", File: "a/x_test.go"},
		{Row: 2, Kind: kind, Test: "TestY", File: "a/y_test.go", Note: "a|b"},
	}
}

func TestCheck(t *testing.T) {
	guarded := func(kind catalogue.Kind) catalogue.Row { return catalogue.Row{Kind: kind, Guard: "so"} }
	another := func(row int) []catalogue.Proof {
		return append(shown(catalogue.Holds), catalogue.Proof{Row: row, Kind: catalogue.Holds, Test: "TestZ", File: "a/z_test.go"})
	}
	for what, test := range map[string]struct {
		groups []catalogue.Group
		proofs []catalogue.Proof
		want   string // "" if nothing is wrong
	}{
		"all is well":                    {rows(catalogue.Row{}), shown(catalogue.Holds), ""},
		"a loss":                         {rows(guarded(catalogue.Loss)), shown(catalogue.Loss), ""},
		"a row without a test":           {rows(catalogue.Row{}), shown(catalogue.Holds)[:1], "row 2 has no test"},
		"a proof of no row":              {rows(catalogue.Row{}), another(4), "a.TestZ shows row 4, which there is not"},
		"a proof of what does not apply": {rows(catalogue.Row{}), another(3), "row 3 does not apply, and a.TestZ shows it"},
		"a loss that no test admits":     {rows(guarded(catalogue.Loss)), shown(catalogue.Holds), `row 2 is "loss", and no test of it says so`},
		"a test that admits too much":    {rows(catalogue.Row{}), append(shown(catalogue.Holds), shown(catalogue.Limit)[1]), `a.TestY shows row 2 as "limit", and the row is "holds"`},
		"a loss without a guard":         {rows(catalogue.Row{Kind: catalogue.Loss}), shown(catalogue.Loss), "row 2 documented loss, and its guard"},
		"a guard of what holds":          {rows(catalogue.Row{Guard: "so"}), shown(catalogue.Holds), "row 2 holds, and its guard"},
		"a number that is another's":     {rows(catalogue.Row{Number: 5}), shown(catalogue.Holds), "row 5 is number 2"},
	} {
		err := catalogue.Check(test.groups, test.proofs)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
