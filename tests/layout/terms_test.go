package layout

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"
)

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
