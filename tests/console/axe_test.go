package console

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A finding is what axe-core says about a page.
type finding struct {
	ID, Impact, Help, HTML string
}

// axe returns the program axe-core, which npm installs.
func axe(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		suite.SkipOrFail(t, "there is no npm: %v", err)
	}
	dir := t.TempDir()
	const install = `cp package.json package-lock.json "$0" && cd "$0" && npm ci --no-audit --no-fund --ignore-scripts`
	if out, err := exec.CommandContext(t.Context(), "bash", "-c", install, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(must(os.ReadFile(filepath.Join(dir, "node_modules/axe-core/axe.min.js")))(t))
}

// People who use a keyboard, a screen reader or a screen without colors can use each page.
func TestAxeFindsNothingSerious(t *testing.T) {
	t.Parallel()
	b, s, program := newBrowser(t), newSite(t), axe(t)
	const search = `axe.run({resultTypes: ["violations"]}).then((found) => found.violations
		.flatMap((v) => v.nodes.map((n) => ({ID: v.id, Impact: v.impact, Help: v.help, HTML: n.html}))))`
	for _, scheme := range []string{"light", "dark"} {
		b.colors(scheme)
		for name, url := range s.pages(t) {
			for _, width := range []int64{1280, 375} {
				b.do(chromedp.EmulateViewport(width, 800))
				b.open(url)
				b.do(chromedp.Evaluate[chromedp.Void](program))
				for _, f := range ask[[]finding](b, search) {
					if f.Impact == "serious" || f.Impact == "critical" {
						t.Errorf("%s, %s, %d pixels: %+v", name, scheme, width, f)
					} else {
						t.Logf("%s, %s, %d pixels: %+v", name, scheme, width, f)
					}
				}
			}
		}
	}
}
