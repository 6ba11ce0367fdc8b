package layout

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTheReadmeIsShort(t *testing.T) {
	const most, widest = 150, 120
	text := pages(t)["README.md"]
	if n := strings.Count(text, "\n"); n > most {
		t.Errorf("README.md has %d lines, and %d are allowed: move text to a page of docs", n, most)
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\n")
		if !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "[!") && !strings.HasPrefix(line, "![") && !strings.HasPrefix(line, "{") && utf8.RuneCountInString(line) > widest {
			t.Errorf("README.md:%d is longer than %d columns", n, widest)
		}
	}
}
