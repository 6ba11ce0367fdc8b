//go:build !unix

package subprocess

import "errors"

// Pause returns an error: this system cannot stop a process.
func (p *Process) Pause() error { return errors.ErrUnsupported }

// Resume returns an error: this system cannot stop a process.
func (p *Process) Resume() error { return errors.ErrUnsupported }
