package layout

import (
	"regexp"
	"strings"
	"testing"
)

var (
	// exampleKey finds the key of a lock in examples, to the end of its line, or of the next one.
	exampleKey = regexp.MustCompile(`(?:(?:Middleware|UnaryServerInterceptor|StreamServerInterceptor|ServerOptions)\(\s*\w+,|_FullMethodName:)[\s/]*([^\n]*(?:\(\n[^\n]*)?)`)
	// exampleVariable finds the first variable of a key.
	exampleVariable = regexp.MustCompile(`^(\w+)(?:\.[A-Z]|[^\w(.])`)
	// exampleFunction finds a key of an adapter.
	exampleFunction = regexp.MustCompile(`^(?:core|nethttplock|ginlock|echolock|grpclock)\.`)
	// named finds what gives a key a name, or chooses among keys.
	named = regexp.MustCompile(`\.(Named|Literal|ByMethod|Switch)\(`)
)

// Users copy examples to a second route. Without a name, account 42 and user 42 then have the
// same lock. Exception: the keys of idempotent endpoints contain the route.
func TestExamplesNameTheirKeys(t *testing.T) {
	examples, others, found := files(t, ".md"), modules(t), 0
	for name, text := range files(t, ".go") {
		if !strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "/example_test.go") {
			examples[name] = text
		}
	}
	for name, text := range examples {
		if isInModule(others, name) || strings.HasPrefix(name, "internal/") || strings.HasPrefix(name, "tests/") {
			continue
		}
		for _, match := range exampleKey.FindAllStringSubmatch(text, -1) {
			key := strings.TrimLeft(strings.TrimPrefix(match[1], "core.All("), "\n\t/ ")
			if named.MatchString(key) || strings.Contains(key, "IdempotencyKey()") {
				found++
				continue
			}
			if exampleFunction.MatchString(key) {
				t.Errorf("%s: the key of a lock has no name: %s", name, match[0])
				continue
			}
			variable := exampleVariable.FindStringSubmatch(key)
			if variable == nil {
				continue
			}
			assigned := regexp.MustCompile(`[\s,]`+variable[1]+`\s*:?=\s*[^\n]*(?:\([^\n]*\n[^\n]*)*`).FindAllString(text, -1)
			for _, a := range assigned {
				found++
				if !named.MatchString(a) {
					t.Errorf("%s: the key of a lock has no name: %s, with %s", name, match[0], a)
				}
			}
		}
	}
	if found < 20 {
		t.Errorf("found only %d keys", found)
	}
}
