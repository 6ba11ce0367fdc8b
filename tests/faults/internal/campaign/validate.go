package campaign

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
	"github.com/reqlock/reqlock/tests/faults/internal/validate"
)

// validateFile validates a kept history again, prints the violations to w, and draws them
// into the directory of the file.
func validateFile(w io.Writer, path string) (found bool, err error) {
	h, err := history.Load(path)
	if err != nil {
		return false, err
	}
	violations := validate.All(h)
	fmt.Fprintf(w, "%s on %s, seed %d: %d ops, %d grants, %d violations\n",
		h.Name, h.Deployment, h.Seed, len(h.Ops), len(grantTimes(h)), len(violations))
	fmt.Fprint(w, lines(violations))
	return len(violations) > 0, draw(violations, filepath.Dir(path))
}
