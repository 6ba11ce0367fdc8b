package layout

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// A rule is a rule of depguard: the imports that the matching files may have.
type rule struct {
	Mode  string   `yaml:"list-mode"`
	Files []string `yaml:"files"`
	Allow []string `yaml:"allow"`
	Deny  []struct {
		Package string `yaml:"pkg"`
	} `yaml:"deny"`

	included, excluded []*regexp.Regexp // the globs of Files, without and with "!"
}

// matches reports whether the rule applies to a file.
func (r *rule) matches(file string) bool {
	matchesFile := func(glob *regexp.Regexp) bool { return glob.MatchString("/" + file) }
	return slices.ContainsFunc(r.included, matchesFile) && !slices.ContainsFunc(r.excluded, matchesFile)
}

// compile prepares matches.
func (r *rule) compile() {
	for _, glob := range r.Files {
		if excluded, ok := strings.CutPrefix(glob, "!"); ok {
			r.excluded = append(r.excluded, pattern(excluded))
		} else {
			r.included = append(r.included, pattern(glob))
		}
	}
}

// pattern returns the regular expression of a glob, in which ** also matches slashes.
func pattern(glob string) *regexp.Regexp {
	text := strings.ReplaceAll(regexp.QuoteMeta(glob), `\*\*`, ".*")
	return regexp.MustCompile("^" + strings.ReplaceAll(text, `\*`, "[^/]*") + "$")
}

// rules returns the import rules of the linter.
func rules(t *testing.T) map[string]*rule {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), ".golangci.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Linters struct {
			Enable   []string `yaml:"enable"`
			Settings struct {
				Depguard struct {
					Rules map[string]*rule `yaml:"rules"`
				} `yaml:"depguard"`
			} `yaml:"settings"`
		} `yaml:"linters"`
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(config.Linters.Enable, "depguard") || len(config.Linters.Settings.Depguard.Rules) == 0 {
		t.Fatal("the linter checks no rules of imports")
	}
	for _, r := range config.Linters.Settings.Depguard.Rules {
		r.compile()
	}
	return config.Linters.Settings.Depguard.Rules
}

func TestEachGlobOfARuleMatchesFiles(t *testing.T) {
	all := sources(t)
	for name, r := range rules(t) {
		for _, glob := range r.Files {
			if strings.HasPrefix(glob, "!") {
				continue
			}
			matching := pattern(glob)
			if !slices.ContainsFunc(all, func(s source) bool { return r.matches(s.path) && matching.MatchString("/"+s.path) }) {
				t.Errorf("rule %s: %s matches no file that the rule does not exclude", name, glob)
			}
		}
	}
}

func TestEachPackageOfTheProductHasARule(t *testing.T) {
	strict := rules(t)
	for name, r := range strict {
		if r.Mode != "strict" {
			delete(strict, name)
		}
	}
	for _, s := range sources(t) {
		if len(s.imports) == 0 || strings.HasPrefix(s.path, "examples/") || strings.HasPrefix(s.path, "tests/") {
			continue // examples have a rule of their own; tests import whatever they test
		}
		n := 0
		for _, r := range strict {
			if r.matches(s.path) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d strict rules match %s, want 1", n, s.path)
		}
	}
}

func TestEachStrictRuleMatchesOnePackage(t *testing.T) {
	all := sources(t)
	for name, r := range rules(t) {
		var dirs []string
		for _, s := range all {
			if dir := path.Dir(s.path); r.Mode == "strict" && r.matches(s.path) && !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
		if len(dirs) > 1 {
			t.Errorf("rule %s matches %v: give each package a rule of its own", name, dirs)
		}
	}
}

// The linter reads an allowed path as a prefix, unless it ends in $: core alone would allow
// core/locktest, too, and with it a Redis in memory.
func TestAnAllowedPackageAllowsNoOther(t *testing.T) {
	all := sources(t)
	for name, r := range rules(t) {
		for _, allowed := range r.Allow {
			below, isOurs := strings.CutPrefix(allowed, module+"/")
			if isOurs && slices.ContainsFunc(all, func(s source) bool { return strings.HasPrefix(path.Dir(s.path), below+"/") }) {
				t.Errorf("rule %s: %s also allows the packages below it: end it with $", name, allowed)
			}
		}
	}
}

func TestEachAllowedImportOfARuleIsImported(t *testing.T) {
	all := sources(t)
	for name, r := range rules(t) {
		for _, allowed := range r.Allow {
			if strings.HasPrefix(allowed, "$") {
				continue
			}
			allowed = strings.TrimSuffix(allowed, "$") // not the packages below it
			if !slices.ContainsFunc(all, func(s source) bool {
				return r.matches(s.path) && s.isImporterOf(allowed)
			}) {
				t.Errorf("rule %s: no file that it matches imports %s", name, allowed)
			}
		}
	}
}

// A denied path that no package has denies nothing.
func TestEachDeniedImportIsImportedElsewhere(t *testing.T) {
	all := sources(t)
	for name, r := range rules(t) {
		for _, denied := range r.Deny {
			if !slices.ContainsFunc(all, func(s source) bool { return s.isImporterOf(denied.Package) }) {
				t.Errorf("rule %s: no file imports %s", name, denied.Package)
			}
		}
	}
}

func TestGlobsMatchAsTheLinterDoes(t *testing.T) {
	below := rule{Files: []string{"**/internal/store/**", "!**/*_test.go"}}
	below.compile()
	direct := rule{Files: []string{"**/core/*.go"}}
	direct.compile()
	if !below.matches("internal/store/store.go") || below.matches("internal/store/store_test.go") ||
		!direct.matches("core/lock.go") || direct.matches("core/locktest/server.go") {
		t.Error("the globs are not those of the linter")
	}
}
