//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A command that does not end with its context, as when it reads a file that never ends, ends with the
// second interrupt.
func TestASecondInterruptEndsTheProcess(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "lint", "--descriptor_set", name)
	cmd.Env = append(os.Environ(), childEnv+"=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	defer func() {
		_ = cmd.Process.Kill()
		<-ended
	}()
	file := must(os.OpenFile(name, os.O_WRONLY, 0))(t) // once the process reads the other end
	defer file.Close()
	interrupts := time.NewTicker(10 * time.Millisecond)
	defer interrupts.Stop()
	suite.Eventually(t, "the process ends", func() bool {
		select {
		case <-ended:
			return true
		case <-interrupts.C:
			_ = cmd.Process.Signal(os.Interrupt)
			return false
		}
	})
}
