package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// childEnv makes the test binary run as the command.
const childEnv = "REQLOCK_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		main()
	}
	suite.Main(m)
}

// runChild runs the command in a process of its own.
func runChild(t *testing.T, args ...string) (status int, out, problems string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), childEnv+"=1")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

// A brokenOutput is an output that nobody gets, such as a full disk.
type brokenOutput struct{}

func (brokenOutput) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// What nobody gets is no success, and watch ends.
func TestALostOutputIsAnError(t *testing.T) {
	t.Parallel()
	_, rdb, o := start(t)
	lease := must(newLocker(t, rdb).Lock(t.Context(), "k"))(t)
	register(t, rdb, processOf(lease), lockView{})
	o.out, o.ticks = brokenOutput{}, make(chan time.Time)
	for _, args := range []string{"ls", "ls --json", "show k", "processes", "doctor", "watch", "watch --json", "key --method POST --route /r k", "help", "version", "completion bash"} {
		o.run(t, strings.Fields(args)...).want(t, exitError, "no space left on device")
	}
}
