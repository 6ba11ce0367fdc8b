package annotatedpb_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// messages returns the text of a file from its first message on.
func messages(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "\n// MethodRules ")
	if !found {
		t.Fatalf("%s has no message MethodRules", file)
	}
	return after
}

// The bytes of an annotation are read as these messages, so they must be the same messages.
func TestTheMessagesAreThoseOfTheAnnotations(t *testing.T) {
	t.Parallel()
	annotations := filepath.Join("..", "..", "annotations", "reqlock", "v1", "annotations.proto")
	if messages(t, "rules.proto") != messages(t, annotations) {
		t.Errorf("rules.proto has other messages than %s: run go generate here", annotations)
	}
}
