package redisserver

import (
	"context"
	"os"
	"os/exec"

	"github.com/reqlock/reqlock/internal/testkit/child"
)

// startProcess starts the program with its output in a file. The process outlives ctx,
// which ends before the cleanup.
func startProcess(ctx context.Context, program, logPath string, args ...string) (*child.Process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600) //nolint:gosec // in a directory of our own
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the child has a copy

	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, args...) //nolint:gosec // the program is redis-server
	cmd.Stdout, cmd.Stderr = log, log
	return child.Start(cmd)
}
