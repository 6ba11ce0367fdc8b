package redistest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// orphanEnv makes TestOrphan play the test process that is killed.
const orphanEnv = "REDISTEST_ORPHAN"

// TestOrphan starts a server and waits to be killed. On its own it does
// nothing: TestServerDiesWithTestProcess runs it in another process.
func TestOrphan(t *testing.T) {
	t.Parallel()
	if os.Getenv(orphanEnv) == "" {
		t.Skip("only runs for TestServerDiesWithTestProcess")
	}
	fmt.Printf("addr=%s\n", Start(t).Addr())
	_, _ = bufio.NewReader(os.Stdin).ReadByte() // until the parent is gone, too
}

func TestServerDiesWithTestProcess(t *testing.T) {
	t.Parallel()
	Start(t) // skips the test where there is no server

	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOrphan$")
	// Killed, it can not remove its files: keep them in the directory of this
	// test.
	cmd.Env = append(os.Environ(), orphanEnv+"=1", "TMPDIR="+t.TempDir())
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close() }()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	addr := ""
	for lines := bufio.NewScanner(stdout); addr == "" && lines.Scan(); {
		_, addr, _ = strings.Cut(lines.Text(), "addr=")
	}
	alive := addr != "" && answers(t, addr)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if !alive {
		t.Fatalf("the other test process has no server: address %q", addr)
	}
	suite.Eventually(t, "the end of the orphan", func() bool { return !answers(t, addr) })
}
