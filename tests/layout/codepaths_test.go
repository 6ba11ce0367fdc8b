package layout

import (
	"path"
	"regexp"
	"strings"
	"testing"
)

// step finds the rows of docs/code-paths.md: a package and its functions, in order.
var step = regexp.MustCompile("(?m)^\\| `([a-z/]+)` \\| (`.*?`) \\|")

// The functions of a row exist, and each one is called by one before it. A call across
// packages is often one of an interface or of a closure, so rows are not compared.
func TestCodePathsFollowTheCode(t *testing.T) {
	sources := make(map[string]string) // by package
	for _, ending := range []string{".go", ".lua"} {
		for name, text := range files(t, ending) {
			if !strings.HasSuffix(name, "_test.go") {
				sources[path.Dir(name)] += text + "\n"
			}
		}
	}
	steps := step.FindAllStringSubmatch(files(t, "code-paths.md")["docs/code-paths.md"], -1)
	if len(steps) < 10 {
		t.Fatalf("found only %d steps", len(steps))
	}
	for _, s := range steps {
		bodies := ""
		for i, name := range strings.Split(strings.ReplaceAll(s[2], "`", ""), ", ") {
			kind, bare, isMethod := strings.Cut(name, ".")
			receiver := `\(\w+ \*?` + kind + `(\[\w+\])?\) `
			if !isMethod {
				receiver, bare = "", name
			}
			function := regexp.MustCompile(`(?ms)^(func ` + receiver + `|local function )` + bare + `[\[(].*?^(\}|end)`)
			body := function.FindString(sources[s[1]])
			if body == "" {
				t.Errorf("%s has no function %s", s[1], name)
			}
			if i > 0 && !regexp.MustCompile(`\b`+bare+`\b`).MatchString(bodies) {
				t.Errorf("%s: no function before %s calls it: %s", s[1], name, s[2])
			}
			bodies += body
		}
	}
}
