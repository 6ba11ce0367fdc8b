//go:build !linux

package child

import "syscall"

// attributes returns the default: only Linux can end a child with its parent.
func attributes() *syscall.SysProcAttr { return nil }

// awaitPaused returns at once: there is no portable way to ask for the state of a process.
func (p *Process) awaitPaused() error { return nil }
