//go:build !linux

package redistest

import "syscall"

// childAttr returns the default: only Linux can kill a child when its parent dies. Elsewhere
// a test process that dies without cleanups leaves the child running.
func childAttr() *syscall.SysProcAttr { return nil }

// awaitStopped returns at once: there is no portable way to check.
func awaitStopped(*process) error { return nil }
