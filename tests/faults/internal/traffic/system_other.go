//go:build !linux

package traffic

import (
	"errors"
	"os"
	"syscall"
)

// childAttr is the default: only Linux ties the life of a child to its parent.
func childAttr() *syscall.SysProcAttr { return nil }

// What processes are told by signals is written for Linux alone.

func stop(*os.Process) error                { return errors.ErrUnsupported }
func resume(*os.Process) error              { return errors.ErrUnsupported }
func dump(*os.Process) error                { return errors.ErrUnsupported }
func standsStill(*os.Process) (bool, error) { return false, errors.ErrUnsupported }
