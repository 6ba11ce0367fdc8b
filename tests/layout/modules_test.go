package layout

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// The other lists of modules, in .ci/run, the Makefile and GitHub's jobs, come from git ls-files.
func TestEachModuleIsUpdated(t *testing.T) {
	t.Parallel()
	for file, mention := range map[string]string{ // how the file names a module: a bare name may also be that of something else
		".github/dependabot.yml": `(?m)/%s(,|\]|$)`,
		"go.work":                `(?m)^\t\./%s$`,
	} {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range modules(t) {
			outside := file == "go.work" && dir == "tests/bench" // a peer's genproto would be ambiguous there
			if !outside && !regexp.MustCompile(fmt.Sprintf(mention, dir)).Match(text) {
				t.Errorf("%s does not name the module %s", file, dir)
			}
		}
	}
}

// Without suite.Main, a package neither looks for goroutines that its tests leave, nor tells
// which tests it skips. Modules that do not require the main one cannot call it.
func TestEachPackageWithTestsCallsSuiteMain(t *testing.T) {
	t.Parallel()
	all := files(t, "go.mod")
	others := slices.DeleteFunc(modules(t), func(dir string) bool { return strings.Contains(all[dir+"/go.mod"], module+" v") })
	calls := make(map[string]bool) // by the folder of a package
	for name, text := range files(t, "_test.go") {
		if !isInModule(others, name) {
			calls[path.Dir(name)] = calls[path.Dir(name)] || strings.Contains(text, "suite.Main(m")
		}
	}
	for dir, called := range calls {
		if !called {
			t.Errorf("%s has tests and no TestMain with suite.Main", dir)
		}
	}
}

// A step that no job names is never run on GitHub, and one that the last list of .ci/run does not name never without its
// name. Exception: the jobs install what the step servers needs.
func TestEachStepIsPartOfAJob(t *testing.T) {
	t.Parallel()
	all, jobs := "", ""
	for file, text := range map[string]*string{".ci/run": &all, ".github/workflows/ci.yml": &jobs} {
		content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		*text = string(content)
	}
	_, jobs, _ = strings.Cut(jobs, "        steps:\n")
	jobs, _, _ = strings.Cut(jobs, "        go:")
	steps := regexp.MustCompile(`(?m)^step (\w+) `).FindAllStringSubmatch(all, -1)
	_, usual, _ := strings.Cut(all, "chosen=(servers")
	usual, _, _ = strings.Cut(usual, ")\n")
	if len(steps) == 0 || usual == "" {
		t.Fatal(".ci/run has no steps")
	}
	for _, step := range steps {
		if step[1] == "servers" {
			continue
		}
		if !slices.Contains(strings.Fields(jobs), step[1]) {
			t.Errorf(".github/workflows/ci.yml does not name the step %s", step[1])
		}
		if !slices.Contains(strings.Fields(strings.ReplaceAll(usual, `"`, " ")), step[1]) {
			t.Errorf(".ci/run does not run the step %s", step[1])
		}
	}
}
