package catalogue_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/reqlock/reqlock/tests/faults/internal/catalogue"
)

const blank = "before\n<!-- rows -->\nstale\n<!-- /rows -->\nbetween\n<!-- guards -->\n<!-- /guards -->\n<!-- mutants -->\n<!-- /mutants -->\nafter\n"

func TestPage(t *testing.T) {
	groups := rows(catalogue.Row{Trigger: "it is lost", Right: "it is reported", Kind: catalogue.Loss, Guard: "a copy"})
	mutants := []catalogue.Mutant{{Name: "m.diff", Says: "It forgets."}}
	page, err := catalogue.Page(blank, groups, shown(catalogue.Loss), mutants)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"before\n<!-- rows -->\n\n### A. All\n",
		"| 1 | it breaks | it is mended | holds | [a.TestX](../../a/x_test.go) |\n",
		"| 2 | it is lost | it is reported | documented loss | [a.TestY](../../a/y_test.go): a\\|b |\n",
		"| 3 | it is not there | it is | does not apply |  |\n\n<!-- /rows -->\nbetween\n",
		"- **2, documented loss.** it is lost *a copy*\n- **3, does not apply.** it is not there *it is not needed*\n",
		"- [m.diff](mutants/m.diff): It forgets.\n\n<!-- /mutants -->\nafter\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, "stale") {
		t.Error("what was there before is left")
	}
	if again, err := catalogue.Page(page, groups, shown(catalogue.Loss), mutants); again != page || err != nil {
		t.Errorf("written twice it is another: %v", err)
	}
	if _, err := catalogue.Page(strings.Replace(blank, "<!-- /guards -->", "", 1), groups, nil, nil); err == nil || !strings.Contains(err.Error(), "guards") {
		t.Errorf("a page without a marker: %v", err)
	}
}

func TestMutants(t *testing.T) {
	files := fstest.MapFS{
		"m/b.diff":       {Data: []byte("It forgets, as\nmany do. That is bad.\n\n- if\n")},
		"m/a.diff":       {Data: []byte("# It never ends\n\nMore.\n")},
		"m/README.md":    {Data: []byte("no mutant")},
		"m/sub/c.diff":   {Data: []byte("no mutant")},
		"other/old.diff": {Data: []byte("no mutant")},
	}
	got, err := catalogue.Mutants(files, "m")
	want := []catalogue.Mutant{{Name: "a.diff", Says: "It never ends"}, {Name: "b.diff", Says: "It forgets, as many do."}}
	if err != nil || len(got) != len(want) || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := catalogue.Mutants(files, "none"); len(got) != 0 || err != nil {
		t.Errorf("a folder that is not there: %v, %v", got, err)
	}
}
