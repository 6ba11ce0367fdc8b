package mutant

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A Mutant is one deliberate mistake.
type Mutant struct {
	// Name is the name of its file, without ".diff".
	Name string
	// Description describes the mistake.
	Description string
	// Faults is a regular expression for the names of the faults that show the mistake, and
	// On is the deployment.
	Faults, On string
	// Checks is a regular expression for the checks that find the mistake. Violations of
	// other checks prove nothing: a busy machine may cause them.
	Checks string

	edits []edit
}

// An edit replaces lines of a file.
type edit struct{ file, from, to string }

// Load reads the mutants of a directory with matching names, sorted by name. It returns an
// error if there are none.
func Load(dir string, names *regexp.Regexp) ([]Mutant, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.diff"))
	if err != nil {
		return nil, err
	}
	slices.Sort(paths)
	var mutants []Mutant
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".diff")
		if !names.MatchString(name) {
			continue
		}
		text, err := os.ReadFile(path) //nolint:gosec // a mutant is our own
		if err != nil {
			return nil, err
		}
		m, err := Parse(name, string(text))
		if err != nil {
			return nil, err
		}
		mutants = append(mutants, m)
	}
	if len(mutants) == 0 {
		return nil, fmt.Errorf("no mutant in %s is called like %q", dir, names)
	}
	return mutants, nil
}
