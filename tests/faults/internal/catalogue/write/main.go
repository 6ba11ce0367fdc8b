// Command write updates the generated parts of README.md of the module faults. Go generate
// runs it in the folder of package catalogue.
package main

import (
	"errors"
	"log"
	"os"

	"github.com/reqlock/reqlock/tests/faults/internal/catalogue"
)

// The repository and the page, relative to the package.
const (
	repository = "../../../.."
	page       = repository + "/tests/faults/README.md"
)

func main() {
	log.SetFlags(0)
	if err := write(); err != nil {
		log.Fatal(err)
	}
}

// write writes the page even if a row has no test.
func write() error {
	files := os.DirFS(repository)
	proofs, wrong := catalogue.Scan(files)
	mutants, err := catalogue.Mutants(files, "tests/faults/mutants")
	if err != nil {
		return err
	}
	old, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	groups := catalogue.Groups()
	written, err := catalogue.Page(string(old), groups, proofs, mutants)
	if err != nil {
		return err
	}
	if err := os.WriteFile(page, []byte(written), 0o644); err != nil { //nolint:gosec // it is a page for everybody
		return err
	}
	return errors.Join(wrong, catalogue.Check(groups, proofs))
}
