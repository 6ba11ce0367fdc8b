package layout

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// link finds the targets of links and pictures in Markdown.
	link = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	// code finds what is no Markdown: blocks of code, and code within a line.
	code = regexp.MustCompile("(?ms)^```.*?^```|`[^`\n]*`")
	// heading finds headings.
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	// unwanted finds what GitHub leaves out of the anchor of a heading.
	unwanted = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchors returns the anchors that GitHub gives to the headings of a page.
func anchors(page string) []string {
	var all []string
	for _, h := range heading.FindAllStringSubmatch(page, -1) {
		all = append(all, strings.ReplaceAll(unwanted.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-"))
	}
	return all
}

// pages returns the Markdown files of the repository by their paths, those of its other
// modules too.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := make(map[string]string)
	files := os.DirFS(root(t))
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "out"):
			return fs.SkipDir
		case path.Ext(name) != ".md":
			return nil
		}
		text, err := fs.ReadFile(files, name)
		found[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestLinksInMarkdownLeadSomewhere(t *testing.T) {
	files, all := os.DirFS(root(t)), pages(t)
	if len(all) < 2 {
		t.Fatalf("found %d pages", len(all))
	}
	for name, page := range all {
		if name == "tests/faults/README.md" {
			continue // a command writes its links, and a test of its module compares them
		}
		for _, match := range link.FindAllStringSubmatch(code.ReplaceAllString(page, ""), -1) {
			target, anchor, hasAnchor := strings.Cut(match[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue // no test may need the internet
			}
			file := name
			if target != "" {
				file = path.Join(path.Dir(name), target)
			}
			if _, err := fs.Stat(files, file); err != nil {
				t.Errorf("%s: %s: %v", name, match[1], err)
			} else if hasAnchor && !slices.Contains(anchors(all[file]), anchor) {
				t.Errorf("%s: %s: the page has no such heading", name, match[1])
			}
		}
	}
}
