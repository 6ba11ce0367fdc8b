package suite

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) { Main(m) }

func TestLeaksWaitsForGoroutinesThatEnd(t *testing.T) {
	time.AfterFunc(0, func() { time.Sleep(700 * time.Millisecond) }) // longer than goleak alone waits
	if err := Leaks(lastDial); err != nil {
		t.Error(err)
	}
}

func TestLeaksReportsAGoroutineThatStays(t *testing.T) {
	end := make(chan struct{})
	defer close(end)
	go func() { <-end }()
	if Leaks(time.Millisecond) == nil {
		t.Error("a goroutine that stays is not seen")
	}
}

// generate returns the folder of a package below this one with some tests. Only packages inside the
// module may import this one. Patterns such as ./... do not match what is below testdata.
func generate(t *testing.T, tests string) (dir string) {
	t.Helper()
	if err := os.MkdirAll("testdata", 0o750); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("testdata", "generated") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	source := "package generated\n\nimport (\n\t\"testing\"\n\n\t\"github.com/reqlock/reqlock/internal/testkit/suite\"\n)\n\n" +
		"func TestMain(m *testing.M) { suite.Main(m) }\n\n" + tests + "\n\n// " + dir + "\n"
	if err := os.WriteFile(filepath.Join(dir, "x_test.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestMainReportsSkippedTestsAndGoroutinesThatAreLeft(t *testing.T) {
	t.Parallel()
	dir := generate(t, `func TestLong(t *testing.T)   { suite.Full(t, "is long") }
func TestLonger(t *testing.T) { suite.Full(t, "is longer") }
func TestShort(*testing.T)    {}
func TestLeak(*testing.T)     { go func() { select {} }() }`)
	binary := filepath.Join(t.TempDir(), "generated.test")
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-ldflags=-s", "-o", binary, "./"+dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const skipped, left = "tests skipped", "goroutines are left"
	for name, test := range map[string]struct {
		run, full  string
		code       int
		want, lack []string
	}{
		"fast tier": {
			run: "Long|Short", want: []string{
				"--- SKIP: TestLong ", "--- SKIP: TestLonger ", "skipped, because it is longer: REQLOCK_FULL=1 runs it",
				"--- PASS: TestShort ", "\n2 tests skipped: REQLOCK_FULL=1 go test runs them\n",
			}, lack: []string{left},
		},
		"full tier": {run: "Long|Short", full: "1", want: []string{"--- PASS: TestLong ", "--- PASS: TestLonger "}, lack: []string{skipped, left}},
		"leak":      {run: "Leak", code: 1, want: []string{"--- PASS: TestLeak ", left}, lack: []string{skipped}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.code != 0 {
				Full(t, "waits for goroutines to end")
			}
			cmd := exec.CommandContext(t.Context(), binary, "-test.v", "-test.run", test.run)
			cmd.Env = append(os.Environ(), fullEnv+"="+test.full)
			out, _ := cmd.CombinedOutput()
			if got := cmd.ProcessState.ExitCode(); got != test.code {
				t.Errorf("exit code %d, want %d", got, test.code)
			}
			for _, text := range test.want {
				if !strings.Contains(string(out), text) {
					t.Errorf("no %q", text)
				}
			}
			for _, text := range test.lack {
				if strings.Contains(string(out), text) {
					t.Errorf("there is %q", text)
				}
			}
			if t.Failed() {
				t.Logf("%s", out)
			}
		})
	}
}
