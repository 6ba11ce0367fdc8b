package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAFileIsNoTerminal(t *testing.T) {
	t.Parallel()
	file := must(os.Create(filepath.Join(t.TempDir(), "file")))(t)
	defer file.Close()
	device := must(os.Open(os.DevNull))(t)
	defer device.Close()
	s := newSession()
	if s.isTerminal(file) || !s.isTerminal(device) || s.isTerminal("another stream") {
		t.Error("a file or another stream is a terminal, or a device is none")
	}
}
