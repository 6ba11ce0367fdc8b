//go:build !linux

package redisserver

import "syscall"

// diesWithParent is the default: only Linux ties the life of a child to that of
// its parent.
func diesWithParent() *syscall.SysProcAttr { return nil }
