package catalogue_test

import (
	"os"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/faults/internal/catalogue"
)

func TestMain(m *testing.M) { suite.Main(m) }

// The repository and the page, relative to the package.
const (
	repository = "../../../.."
	page       = repository + "/tests/faults/README.md"
)

// Each row has tests, each directive is right, and the page is up to date.
func TestPageIsUpToDate(t *testing.T) {
	files := os.DirFS(repository)
	proofs, err := catalogue.Scan(files)
	if err != nil {
		t.Error(err)
	}
	groups := catalogue.Groups()
	if err := catalogue.Check(groups, proofs); err != nil {
		t.Error(err)
	}
	mutants, err := catalogue.Mutants(files, "tests/faults/mutants")
	if err != nil {
		t.Error(err)
	}
	readme, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want, err := catalogue.Page(string(readme), groups, proofs, mutants)
	if err != nil {
		t.Fatal(err)
	}
	if want != string(readme) {
		t.Error("tests/faults/README.md is stale: run go generate ./internal/catalogue in the module faults")
	}
}

// Directives refer to rows by number, so a number never changes.
func TestRowsAreNumbered(t *testing.T) {
	n := 0
	for _, group := range catalogue.Groups() {
		for _, row := range group.Rows {
			if n++; row.Number != n || row.Trigger == "" || row.Right == "" {
				t.Errorf("row %d of the list: %+v", n, row)
			}
		}
	}
	if n != 56 {
		t.Errorf("%d rows", n)
	}
}
