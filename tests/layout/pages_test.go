package layout

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// link finds the targets of links and pictures, in Markdown and in the HTML inside it.
	link = regexp.MustCompile(`\]\(([^)\s]+)\)|\b(?:src|srcset|href)="([^"]+)"`)
	// blocks and code find what is no Markdown: blocks of code, and code within a line.
	blocks = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	code   = regexp.MustCompile("`[^`\n]*`")
	// heading finds headings.
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	// ownAnchor finds anchors that a page names itself, as in the rows of the glossary.
	ownAnchor = regexp.MustCompile(`<a id="([^"]+)">`)
	// linked finds links, to keep their text.
	linked = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	// address finds files of this repository by their addresses on GitHub.
	address = regexp.MustCompile(`https://github\.com/reqlock/reqlock/(?:blob|tree)/main/(\S+)`)
	// section finds sections of package comments by their addresses on pkg.go.dev.
	section = regexp.MustCompile(`https://pkg\.go\.dev/github\.com/reqlock/reqlock/([\w/]+)#hdr-(\w+)`)
	// unwanted finds what GitHub leaves out of the anchor of a heading.
	unwanted = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchors returns the anchors that GitHub gives to the headings of a page, and those that the page names.
func anchors(page string) (all []string) {
	for _, match := range ownAnchor.FindAllStringSubmatch(page, -1) {
		all = append(all, match[1])
	}
	for _, h := range heading.FindAllStringSubmatch(blocks.ReplaceAllString(page, ""), -1) {
		text := strings.TrimSpace(linked.ReplaceAllString(h[1], "$1"))
		all = append(all, strings.ReplaceAll(unwanted.ReplaceAllString(strings.ToLower(text), ""), " ", "-"))
	}
	return all
}

// targets returns what a page links to.
func targets(page string) (all []string) {
	for _, match := range link.FindAllStringSubmatch(code.ReplaceAllString(blocks.ReplaceAllString(page, ""), ""), -1) {
		all = append(all, match[1]+match[2]) // one of the two is empty
	}
	return all
}

func TestLinksLeadSomewhere(t *testing.T) {
	tree, pages := os.DirFS(root), files(t, ".md")
	wrong := targets("`[code](x)` [file](none.md) <img src=\"#none\">") // so the check checks
	if len(wrong) != 2 || broken(tree, pages, "README.md", wrong[0]) == "" || broken(tree, pages, "README.md", wrong[1]) == "" {
		t.Errorf("found %q, and not that the links are broken", wrong)
	}
	for name, page := range pages {
		for _, to := range targets(page) {
			if reason := broken(tree, pages, name, to); reason != "" {
				t.Errorf("%s: %s: %s", name, to, reason)
			}
		}
		for _, match := range section.FindAllStringSubmatch(page, -1) {
			comment, err := os.ReadFile(filepath.Join(root, match[1], "doc.go"))
			heading := "\n// # " + strings.ReplaceAll(match[2], "_", " ") + "\n"
			if err != nil || !strings.Contains(string(comment), heading) {
				t.Errorf("%s: %s: the comment has no such section", name, match[0])
			}
		}
	}
	for name, source := range files(t, ".go") {
		for _, match := range address.FindAllStringSubmatch(source, -1) {
			if reason := broken(tree, pages, "", match[1]); reason != "" {
				t.Errorf("%s: %s: %s", name, match[0], reason)
			}
		}
	}
}

func TestTheIndexLinksEachPageOfDocs(t *testing.T) {
	pages := files(t, ".md")
	linked := targets(pages["docs/README.md"])
	for name := range pages {
		if path.Dir(name) == "docs" && name != "docs/README.md" && !slices.Contains(linked, path.Base(name)) {
			t.Errorf("docs/README.md does not link %s", path.Base(name))
		}
	}
}

// broken returns why a link of a page leads nowhere, or "".
func broken(files fs.FS, all map[string]string, page, to string) string {
	target, anchor, hasAnchor := strings.Cut(to, "#")
	if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
		return "" // no test may need the internet
	}
	file := page
	if target != "" {
		file = path.Join(path.Dir(page), target)
	}
	if _, err := fs.Stat(files, file); err != nil {
		return err.Error()
	}
	if hasAnchor && !slices.Contains(anchors(all[file]), anchor) {
		return "the page has no such anchor"
	}
	return ""
}
