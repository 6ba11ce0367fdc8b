package layout

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

var (
	// link finds the targets of links and pictures, in Markdown and in the HTML inside it.
	link = regexp.MustCompile(`\]\(([^)\s]+)\)|\b(?:src|srcset|href)="([^"]+)"`)
	// blocks finds blocks of code.
	blocks = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	// code finds what is no Markdown: blocks of code, and code within a line.
	code = regexp.MustCompile("(?ms)^ *```.*?^ *```|`[^`\n]*`")
	// heading finds headings.
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	// linked finds links, to keep their text.
	linked = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	// address finds files of this repository by their addresses on GitHub.
	address = regexp.MustCompile(`https://github\.com/reqlock/reqlock/(?:blob|tree)/main/(\S+)`)
	// section finds sections of package comments by their addresses on pkg.go.dev.
	section = regexp.MustCompile(`https://pkg\.go\.dev/github\.com/reqlock/reqlock/([\w/]+)#hdr-(\w+)`)
	// unwanted finds what GitHub leaves out of the anchor of a heading.
	unwanted = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchors returns the anchors that GitHub gives to the headings of a page. Of headings with
// the same text, all but the first have a number.
func anchors(page string) []string {
	var all []string
	seen := make(map[string]int)
	for _, h := range heading.FindAllStringSubmatch(blocks.ReplaceAllString(page, ""), -1) {
		text := strings.TrimSpace(linked.ReplaceAllString(h[1], "$1"))
		anchor := strings.ReplaceAll(unwanted.ReplaceAllString(strings.ToLower(text), ""), " ", "-")
		seen[anchor]++
		if n := seen[anchor]; n > 1 {
			anchor += "-" + strconv.Itoa(n-1)
		}
		all = append(all, anchor)
	}
	return all
}

// targets returns what a page links to.
func targets(page string) []string {
	var all []string
	for _, match := range link.FindAllStringSubmatch(code.ReplaceAllString(page, ""), -1) {
		all = append(all, match[1]+match[2]) // one of the two is empty
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
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "out" || entry.Name() == "testdata"):
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
		for _, to := range targets(page) {
			if reason := broken(files, all, name, to); reason != "" {
				t.Errorf("%s: %s: %s", name, to, reason)
			}
		}
	}
}

// Comments link pages by their addresses.
func TestLinksInCommentsLeadSomewhere(t *testing.T) {
	files, all, found := os.DirFS(root(t)), pages(t), 0
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "out" || entry.Name() == "testdata"):
			return fs.SkipDir
		case path.Ext(name) != ".go":
			return nil
		}
		text, err := fs.ReadFile(files, name)
		for _, match := range address.FindAllStringSubmatch(string(text), -1) {
			found++
			if reason := broken(files, all, "", match[1]); reason != "" {
				t.Errorf("%s: %s: %s", name, match[0], reason)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 20 {
		t.Errorf("found only %d links", found)
	}
}

func TestLinksToSectionsOfCommentsLeadSomewhere(t *testing.T) {
	found := 0
	for name, page := range pages(t) {
		for _, match := range section.FindAllStringSubmatch(page, -1) {
			found++
			comment, err := os.ReadFile(filepath.Join(root(t), match[1], "doc.go"))
			heading := "\n// # " + strings.ReplaceAll(match[2], "_", " ") + "\n"
			if err != nil || !strings.Contains(string(comment), heading) {
				t.Errorf("%s: %s: the comment has no such section", name, match[0])
			}
		}
	}
	if found < 2 {
		t.Errorf("found only %d links", found)
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
		return "the page has no such heading"
	}
	return ""
}

func TestBrokenLinksAreFound(t *testing.T) {
	files := fstest.MapFS{"README.md": {}, "docs/keys.md": {}, "docs/pictures/turns.svg": {}}
	all := map[string]string{
		"README.md":    "# reqlock\n",
		"docs/keys.md": "# Keys\n## `Named` and [Join](x)\n## Limits\n## Limits\n```sh\n# no heading\n```\n",
	}
	for to, want := range map[string]bool{
		"../README.md#reqlock": true, "#named-and-join": true, "#limits-1": true, "pictures/turns.svg": true, "keys.md": true, ".": true,
		"README.md": false, "#limits-2": false, "#no-heading": false, "pictures/turn.svg": false, "../docs/keys.md#key": false, "../..": false,
	} {
		if reason := broken(files, all, "docs/keys.md", to); (reason == "") != want {
			t.Errorf("%s: %q", to, reason)
		}
	}
	got := targets("[a](b) `[c](d)` ![e](f)\n```\n[g](h)\n```\n<img src=\"i\" alt=\"j\"> [k](#l)")
	if want := []string{"b", "f", "i", "#l"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
