package campaign

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/reqlock/reqlock/tests/faults/internal/check"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// judge judges a kept history again, tells w what is found, and draws it beside
// the file.
func judge(w io.Writer, path string) (found bool, err error) {
	h, err := history.Load(path)
	if err != nil {
		return false, err
	}
	findings := check.All(h)
	fmt.Fprintf(w, "%s on %s, seed %d: %d ops, %d grants, %d findings\n",
		h.Name, h.Deployment, h.Seed, len(h.Ops), len(grants(h)), len(findings))
	fmt.Fprint(w, listed(findings))
	return len(findings) > 0, draw(findings, filepath.Dir(path))
}
