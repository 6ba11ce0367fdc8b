//go:build !linux

package traffic

import (
	"errors"
	"os"
	"syscall"
)

// childAttr is the default: only Linux can end a child with its parent.
func childAttr() *syscall.SysProcAttr { return nil }

// Pausing processes is implemented for Linux only.

func stop(*os.Process) error                { return errors.ErrUnsupported }
func resume(*os.Process) error              { return errors.ErrUnsupported }
func dump(*os.Process) error                { return errors.ErrUnsupported }
func standsStill(*os.Process) (bool, error) { return false, errors.ErrUnsupported }
