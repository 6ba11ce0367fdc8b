//go:build !linux

package subprocess

import "syscall"

// childAttr returns the default: only Linux can end a child with its parent.
func childAttr() *syscall.SysProcAttr { return nil }

// awaitPaused returns at once: there is no portable way to ask for a process's state.
func (p *Process) awaitPaused() error { return nil }
