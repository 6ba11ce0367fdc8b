package layout

import (
	"path"
	"slices"
	"testing"
)

func TestTheIndexLinksEachPageOfDocs(t *testing.T) {
	all := pages(t)
	linked := targets(all["docs/README.md"])
	for name := range all {
		if path.Dir(name) == "docs" && name != "docs/README.md" && !slices.Contains(linked, path.Base(name)) {
			t.Errorf("docs/README.md does not link %s", path.Base(name))
		}
	}
}
