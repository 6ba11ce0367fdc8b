package mutant

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A Mutant is one mistake.
type Mutant struct {
	// Name is that of its file, without the end.
	Name string
	// Description says it in plain words.
	Description string
	// Faults is a regular expression of the names of those that show it, and On
	// the deployment on which they do.
	Faults, On string
	// Checks is one of the names of those that find it. What others find is no
	// proof: a busy machine has its own ways to go wrong.
	Checks string

	edits []edit
}

// An edit replaces some lines of a file by others.
type edit struct{ file, from, to string }

// Load reads the mutants of a directory whose names match, in the order of their
// names. It is an error if there are none.
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
