//go:build !linux

package redisserver

import "syscall"

// diesWithParent is the default: only Linux can end a child with its parent.
func diesWithParent() *syscall.SysProcAttr { return nil }
