package campaign

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/reqlock/reqlock/tests/faults/internal/validate"
)

// historyFile is the name of a kept history. ViolationsFile is the name of the list of its
// violations, one on each line.
const (
	historyFile    = "history.json"
	ViolationsFile = "violations.txt"
)

// newDir creates a directory below out with this name. If it exists, newDir adds a number:
// it never changes what an earlier run has kept.
func newDir(out, name string) (dir string, err error) {
	if err := os.MkdirAll(out, 0o750); err != nil {
		return "", err
	}
	dir = filepath.Join(out, name)
	for n := 2; ; n++ {
		err := os.Mkdir(dir, 0o750)
		if !errors.Is(err, fs.ErrExist) {
			return dir, err
		}
		dir = filepath.Join(out, fmt.Sprintf("%s-%d", name, n))
	}
}

// keep writes all that is known of a run into a directory of its own below out, and returns
// that directory.
func (r *Report) keep(out string) (dir string, err error) {
	dir, err = newDir(out, r.Run.Name())
	if err != nil {
		return dir, err
	}
	var failures []error
	write := func(name string, text []byte) {
		failures = append(failures, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	if r.History != nil {
		failures = append(failures, r.History.Save(filepath.Join(dir, historyFile)))
	}
	write(ViolationsFile, []byte(lines(r.Violations)))
	write("run.log", []byte(r.Log))
	for name, text := range r.ServerLogs {
		write(name, text)
	}
	failures = append(failures, draw(r.Violations, dir))
	return dir, errors.Join(failures...)
}

// lines returns the violations, one on each line.
func lines(violations []validate.Violation) string {
	var lines strings.Builder
	for _, f := range violations {
		fmt.Fprintln(&lines, strings.ReplaceAll(f.String(), "\n", " "))
	}
	return lines.String()
}

// draw draws the violations that have a picture into the directory.
func draw(violations []validate.Violation, dir string) error {
	var failures []error
	for i, f := range violations {
		if f.Picture != nil {
			failures = append(failures, f.Picture(filepath.Join(dir, fmt.Sprintf("%d-%s.html", i+1, f.Check))))
		}
	}
	return errors.Join(failures...)
}
