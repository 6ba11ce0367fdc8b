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

// Apply writes the changed files of the product at root into a directory, and beside them
// the file for the -overlay flag of go build. It returns the path of that file.
//
// It returns an error if the lines of an edit are not in their file, or are there more than
// once: then the product has changed, and the mutant must follow.
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

// changed returns the changed files by name.
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

// apply returns the text with the edit made. An edit consists of whole lines.
func (e edit) apply(text string) (string, error) {
	// each line, the first one too, begins after a newline
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
