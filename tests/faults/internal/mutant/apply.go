package mutant

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Apply writes the files of the product, which is at root, as the mutant changes
// them, into the directory, and beside them what go build has to be given as
// -overlay. It returns the path of that.
//
// It is an error if what is to be changed is not in its file, or more than once:
// then the product has moved on, and the mutant has to follow.
func (m Mutant) Apply(root, dir string) (overlay string, err error) {
	changed, err := m.changed(root)
	if err != nil {
		return "", err
	}
	replace := make(map[string]string)
	for file, text := range changed {
		path := filepath.Join(dir, strconv.Itoa(len(replace))+"-"+filepath.Base(file))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(root, filepath.FromSlash(file))] = path
	}
	text, err := json.MarshalIndent(map[string]any{"Replace": replace}, "", "\t")
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// changed returns the changed files by their names.
func (m Mutant) changed(root string) (map[string]string, error) {
	files := make(map[string]string)
	var wrong []error
	for _, e := range m.edits {
		if _, read := files[e.file]; !read {
			text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(e.file))) //nolint:gosec // a mutant is our own
			if err != nil {
				return nil, fmt.Errorf("mutant %s: %w", m.Name, err)
			}
			files[e.file] = string(text)
		}
		text, err := e.apply(files[e.file])
		if err != nil {
			wrong = append(wrong, fmt.Errorf("mutant %s: %w", m.Name, err))
		}
		files[e.file] = text
	}
	return files, errors.Join(wrong...)
}

// apply returns the text with the edit made. The lines of the edit are whole
// ones.
func (e edit) apply(text string) (string, error) {
	// A line begins where another one ends, the first one too.
	from, whole := "\n"+e.from, "\n"+text
	first, last := strings.Index(whole, from), strings.LastIndex(whole, from)
	switch {
	case first < 0:
		return text, fmt.Errorf("%s does not have these lines:\n%s", e.file, e.from)
	case first != last:
		return text, fmt.Errorf("%s has these lines more than once:\n%s", e.file, e.from)
	}
	return (whole[:first] + "\n" + e.to + whole[first+len(from):])[1:], nil
}
