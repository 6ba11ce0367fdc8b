package redisserver

import "syscall"

// diesWithParent makes the kernel kill the child if this process dies without
// its clean-up.
func diesWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
