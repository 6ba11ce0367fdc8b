package layout

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

const adapters = `core|nethttplock|ginlock|echolock|grpclock` // the packages with key functions

var (
	// exampleKey finds the key function of a lock in examples, or a variable with one. Functions that share the
	// lock may stand around it, and a comment may wrap its line.
	exampleKey = regexp.MustCompile(`(?:(?:Middleware|UnaryServerInterceptor|StreamServerInterceptor|ServerOptions)\(\s*\w+,|\bAlso\(|core\.When\(\w+,|_FullMethodName:)` +
		`[\s/]*(?:(?:core\.Permits\(\d+,|core\.Shared\(|core\.SharedWhen\(\w+,|\w+\.SharedReads\()[\s/]*)?((?:` + adapters + `)\.\w+|\w+)(.*)`)
	// exampleAssignment finds what variables are set to.
	exampleAssignment = regexp.MustCompile(`(\w+)\s*:?=\s*((?:` + adapters + `)\.\w+)[[(]`)
	// named finds a function that makes a key with a name, or that chooses one.
	named = regexp.MustCompile(`\.(Named|When|Literal|ByMethod|Permits|Shared|SharedWhen|SharedReads)$`)
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
		assigned := exampleAssignment.FindAllStringSubmatch(text, -1)
		for _, match := range exampleKey.FindAllStringSubmatch(text, -1) {
			functions := []string{match[1]}
			if !strings.Contains(match[1], ".") { // a variable, or a part of one
				functions = nil
				for _, a := range assigned {
					if a[1] == match[1] && !strings.HasPrefix(match[2], ".") {
						functions = append(functions, a[2])
					}
				}
			}
			found += len(functions)
			inEndpoint := strings.Contains(match[0], "_FullMethodName") && strings.Contains(match[2], "IdempotencyKey()")
			if slices.ContainsFunc(functions, func(f string) bool { return !named.MatchString(f) }) && !inEndpoint {
				t.Errorf("%s: the key of a lock has no name: %s", name, match[0])
			}
		}
	}
	if found < 20 {
		t.Errorf("found only %d keys", found)
	}
}
