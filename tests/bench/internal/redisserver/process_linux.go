package redisserver

import "syscall"

// diesWithParent makes the kernel kill the child if this process ends without its cleanup.
func diesWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
