package redistest

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/reqlock/reqlock/internal/testkit/child"
)

func startProcess(program, logPath string, args []string) (*child.Process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600) //nolint:gosec // in the directory of the test
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	// The child has its own copy of the descriptor.
	defer func() { _ = log.Close() }()

	// The background context, because the context of the test ends before the cleanups.
	cmd := exec.CommandContext(context.Background(), program, args...) //nolint:gosec // the program is redis-server
	cmd.Stdout = log
	cmd.Stderr = log
	p, err := child.Start(cmd)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	return p, nil
}
