package api_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/api"
)

func TestMain(m *testing.M) { suite.Main(m) }

// root is the repository, seen from this package.
const root = "../.."

func TestTheTextOfTheAPIIsThatOfTheCode(t *testing.T) {
	texts, err := api.Texts(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range texts {
		kept, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(api.File(name))))
		if err != nil {
			t.Fatal(err)
		}
		old, now := strings.Split(string(kept), "\n"), strings.Split(text, "\n")
		for _, line := range old {
			if !slices.Contains(now, line) {
				t.Errorf("%s, removed: %s", name, line)
			}
		}
		for _, line := range now {
			if !slices.Contains(old, line) {
				t.Errorf("%s, added: %s", name, line)
			}
		}
	}
	if t.Failed() {
		t.Log("if the change is intended, run go generate ./tests/api, and name the change in CHANGELOG.md")
	}
}

// A new package that users import must be in the list.
func TestAllPackagesThatUsersImportAreCovered(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "*", "doc.go"))
	if err != nil {
		t.Fatal(err)
	}
	nested, err := filepath.Glob(filepath.Join(root, "*", "*", "doc.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, nested...) {
		dir, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.ToSlash(dir)
		top, _, _ := strings.Cut(name, "/")
		if slices.Contains([]string{"internal", "tests", "examples"}, top) || slices.Contains(api.Packages(), name) {
			continue
		}
		t.Errorf("users can import %s, and package api does not describe it", name)
	}
}

// The text of a package that is gone must go, too.
func TestEachTextIsThatOfAPackage(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "api", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		ofPackage := func(name string) bool { return filepath.Base(api.File(name)) == filepath.Base(file) }
		if !slices.ContainsFunc(api.Packages(), ofPackage) {
			t.Errorf("api/%s describes no package", filepath.Base(file))
		}
	}
}
