package docs

import (
	"fmt"
	"regexp"
	"strings"
)

// DefaultPrelude is the prelude of a block without a comment.
const DefaultPrelude = "http"

// A Block is a block of Go code in a page.
type Block struct {
	Page    string // the path of the page
	Line    int    // the number of its first line of code in the page
	Prelude string // what declares its free names
	Text    string // without the indentation of its fence
}

// preludeComment matches the line before a fence that chooses a prelude.
var preludeComment = regexp.MustCompile(`^<!-- go: (\w+) -->$`)

// fence marks the begin and the end of a block of code.
const fence = "```"

// Blocks returns the blocks of Go code in the text of a page.
func Blocks(page, text string) ([]Block, error) {
	var (
		found   []Block
		prelude = DefaultPrelude
		lines   = strings.Split(text, "\n")
	)
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])
		if comment := preludeComment.FindStringSubmatch(line); comment != nil {
			prelude = comment[1]
			continue
		}
		if strings.HasPrefix(line, fence) {
			end := closing(lines, i)
			if end < 0 {
				return nil, fmt.Errorf("%s:%d: this fence is never closed", page, i+1)
			}
			if line == fence+"go" {
				indent, _, _ := strings.Cut(lines[i], fence)
				code := unindented(lines[i+1:end], indent)
				found = append(found, Block{Page: page, Line: i + 2, Prelude: prelude, Text: code})
			}
			i = end
		}
		prelude = DefaultPrelude
	}
	return found, nil
}

// closing returns the index of the line that closes the fence in line i, or -1.
func closing(lines []string, i int) int {
	for j := i + 1; j < len(lines); j++ {
		if strings.TrimSpace(lines[j]) == fence {
			return j
		}
	}
	return -1
}

// unindented joins lines without the indentation that all lines of a list item have.
func unindented(lines []string, indent string) string {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(strings.TrimPrefix(line, indent) + "\n")
	}
	return b.String()
}
