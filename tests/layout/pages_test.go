package layout

import (
	"fmt"
	"io/fs"
	"maps"
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
	t.Parallel()
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
	t.Parallel()
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

// spellings match what pages and comments of the API must not say, by the term of the glossary to write instead.
var spellings = map[string]string{
	"answer":          `(stored|saved|cached|replayed) (response|reply|result)s?`,
	"fencing number":  `fenc(e|ing) (token|value)s?|fence numbers?|(a|the|lower|higher) fence`,
	"hand-off":        `hand.overs?|hand offs?|handoffs?`, // a handover is another thing
	"holder":          `(lock|lease) (holder|owner)s?|owners? of (a|the) (lock|lease)`,
	"queue":           `(form|join|leave)s? (a|the|no) line|line of waiters|first in (the )?line|line across`,
	"refusal":         `reject(s|ed|ing|ions?)`,
	"TTL":             `time to live|time-to-live|lease (time|duration|timeout)s?`,
	"unknown outcome": `(unclear|uncertain|undetermined) (outcome|result)s?|unknown results?`,
	"waiter":          `waiting (request|caller|client)s?`,
}

func TestEachTermHasOneSpelling(t *testing.T) {
	t.Parallel()
	scope := regexp.MustCompile(`^(README|docs/[\w-]+)\.md$|^(core|adapter|console|inspect|(nethttp|gin|echo|echov5|fiber|grpc|proto|otel)lock)/\w+\.go$`)
	texts, code := files(t, ".md"), regexp.MustCompile(`(?m)^\s*(?:[^/\s].*|//)`)
	for _, term := range ownAnchor.FindAllStringSubmatch(texts["docs/glossary.md"], -1) {
		if !strings.Contains(fmt.Sprint(texts), "glossary.md#"+term[1]+")") {
			t.Errorf("no page links to the term %q of docs/glossary.md", term[1])
		}
	}
	maps.Copy(texts, files(t, ".go"))
	maps.DeleteFunc(texts, func(name, _ string) bool { return !scope.MatchString(name) || strings.HasSuffix(name, "_test.go") })
	for name, text := range texts {
		if strings.HasSuffix(name, ".go") {
			text = code.ReplaceAllString(text, "") // only comments
		}
		for term, wrong := range spellings {
			pattern := regexp.MustCompile(`(?i)\b(` + strings.ReplaceAll(wrong, " ", `\s+`) + `)\b`)
			if found := pattern.FindString(linked.ReplaceAllString(text, "$1")); found != "" {
				t.Errorf("%s: %q: write %q, the term of docs/glossary.md", name, found, term)
			}
		}
	}
}
