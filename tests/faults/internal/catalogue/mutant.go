package catalogue

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// A Mutant is a deliberate mistake in the lock that the campaign must find.
type Mutant struct {
	// Name is the name of its file.
	Name string
	// Says is the first sentence of the file, which describes the mistake.
	Says string
}

// Mutants returns the .diff files of a folder, sorted by name. A missing folder has none.
func Mutants(repository fs.FS, folder string) ([]Mutant, error) {
	entries, err := fs.ReadDir(repository, folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var mutants []Mutant
	for _, entry := range entries {
		if path.Ext(entry.Name()) != ".diff" {
			continue
		}
		text, err := fs.ReadFile(repository, folder+"/"+entry.Name())
		if err != nil {
			return nil, err
		}
		mutants = append(mutants, Mutant{entry.Name(), firstSentence(string(text))})
	}
	return mutants, nil
}

// firstSentence returns the first sentence of a text on one line, without marks of comments
// and headings.
func firstSentence(text string) string {
	paragraph, _, _ := strings.Cut(strings.TrimLeft(text, "\n"), "\n\n")
	var fields []string
	for line := range strings.Lines(paragraph) {
		fields = append(fields, strings.Fields(strings.TrimLeft(line, "#/ "))...)
	}
	all := strings.Join(fields, " ")
	if sentence, _, more := strings.Cut(all, ". "); more {
		return sentence + "."
	}
	return all
}

// mutantList returns the mutants as a Markdown list.
func mutantList(mutants []Mutant) string {
	var b strings.Builder
	b.WriteByte('\n')
	for _, mutant := range mutants {
		fmt.Fprintf(&b, "- [%s](mutants/%s): %s\n", mutant.Name, mutant.Name, mutant.Says)
	}
	b.WriteByte('\n')
	return b.String()
}
