package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"testing"

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
