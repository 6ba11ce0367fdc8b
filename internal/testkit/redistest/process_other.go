//go:build !linux

package redistest

import "syscall"

// childAttr is the default: only Linux can tie the life of a child to its
// parent. Elsewhere a test process that dies without cleanup leaves it behind.
func childAttr() *syscall.SysProcAttr { return nil }

// awaitStopped returns at once: there is no portable way to ask.
func awaitStopped(*process) error { return nil }
