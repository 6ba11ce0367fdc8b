//go:build !linux

package child

import (
	"syscall"
	"time"
)

// attributes returns the default: only Linux can end a child with its parent.
func attributes() *syscall.SysProcAttr { return nil }

// awaitPaused returns at once: there is no portable way to ask for the state of a process.
func (p *Process) awaitPaused() error { return nil }

// Delayed returns 0: there is no portable way to ask.
func (p *Process) Delayed() time.Duration { return 0 }
