package configuration_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/tests/docs/configuration"
)

func TestMain(m *testing.M) { suite.Main(m) }

// root is the repository, seen from this package.
const root = "../../.."

func TestThePageIsThatOfTheCode(t *testing.T) {
	want, err := configuration.Page(root)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(configuration.File)))
	if err != nil {
		t.Fatal(err)
	}
	old, now := strings.Split(string(got), "\n"), strings.Split(want, "\n")
	for i := range max(len(old), len(now)) {
		if i >= len(old) || i >= len(now) || old[i] != now[i] {
			t.Fatalf("%s differs in line %d: run go generate ./tests/docs", configuration.File, i+1)
		}
	}
}
