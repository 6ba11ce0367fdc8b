package reqlockv1_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// root is the module, seen from this package.
const root = ".."

// look returns the path of a command, and skips the test on a machine without it. In CI the test
// fails then.
func look(t *testing.T, command string) string {
	t.Helper()
	found, err := exec.LookPath(command)
	if err != nil {
		if os.Getenv("REQLOCK_REQUIRE_REDIS") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return found
}

// run runs a command in a folder.
func run(t *testing.T, dir, command string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), command, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
}

// built is the folder of the plugin, and build builds the plugin once.
var (
	built string
	build sync.Once
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "reqlockv1")
	if err != nil {
		panic(err)
	}
	built = dir
	status := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(status)
}

// plugin returns the path of protoc-gen-go, of the version that go.mod requires.
func plugin(t *testing.T) string {
	t.Helper()
	path := filepath.Join(built, "protoc-gen-go")
	build.Do(func() { run(t, root, "go", "build", "-o", path, "google.golang.org/protobuf/cmd/protoc-gen-go") })
	return path
}

// write writes files into a new folder, and returns the folder.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// read returns the text of a file.
func read(t *testing.T, elements ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
