package docs

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// A Block is a block of Go code in a page.
type Block struct {
	Page    string // the path of the page
	Line    int    // the number of its first line of code in the page
	Prelude string // what declares its free names
	Text    string // without the indentation of its fence
}

// fenced matches a block of any language: the prelude of the line before it, the indentation, the language, and the code.
var fenced = regexp.MustCompile("(?m)^(?: *<!-- go: (\\w+) -->\n)?( *)```(.*)\n((?s:.*?))^ *```$")

// preludes are those of the rows in the README's table of frameworks.
var preludes = map[string]string{"Gin": "gin", "Echo v5": "echov5", "Fiber v3": "fiber", "gRPC": "grpc", "none": "http"}

// frameworkRow matches such a row: the framework, and the code of the lock on a route.
var frameworkRow = regexp.MustCompile("(?m)^\\| \\[?(Gin|Echo v5|Fiber v3|gRPC|none)\\b[^|]*\\| `([^`]+)` \\|")

// Pages returns the blocks of README.md and of the pages of the folder docs, and the code in the
// README's table of frameworks. The root is the folder of the repository.
func Pages(root string) ([]Block, error) {
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		return nil, err
	}
	var all []Block
	for i, file := range append([]string{filepath.Join(root, "README.md")}, files...) {
		text, err := os.ReadFile(file) //nolint:gosec // a page of the repository
		if err != nil {
			return nil, err
		}
		blocks, err := Blocks(strings.TrimPrefix(filepath.ToSlash(file), filepath.ToSlash(root)+"/"), string(text))
		if err != nil {
			return nil, err
		}
		all = append(all, blocks...)
		if i > 0 {
			continue
		}
		rows := frameworkRow.FindAllSubmatchIndex(text, -1)
		if len(rows) != len(preludes) {
			return nil, fmt.Errorf("README.md has rows of %d frameworks, want %d", len(rows), len(preludes))
		}
		for _, at := range rows {
			line := 1 + strings.Count(string(text[:at[0]]), "\n")
			all = append(all, Block{"README.md", line, preludes[string(text[at[2]:at[3]])], string(text[at[4]:at[5]]) + "\n"})
		}
	}
	return all, nil
}

// Blocks returns the blocks of Go code in the text of a page.
func Blocks(page, text string) (found []Block, err error) {
	if strings.Contains(fenced.ReplaceAllString(text, ""), "```") {
		return nil, fmt.Errorf("%s: a block of code is never closed", page)
	}
	for _, at := range fenced.FindAllStringSubmatchIndex(text, -1) {
		part := func(group int) string { return text[max(at[2*group], 0):max(at[2*group+1], 0)] }
		if part(3) != "go" {
			continue
		}
		b := Block{Page: page, Line: 1 + strings.Count(text[:at[8]], "\n"), Prelude: cmp.Or(part(1), "http")}
		for line := range strings.Lines(part(4)) {
			b.Text += strings.TrimPrefix(line, part(2))
		}
		found = append(found, b)
	}
	return found, nil
}
