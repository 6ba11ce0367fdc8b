//go:build !unix

package child

import "errors"

// Pause returns an error: this system cannot stop a process.
func (p *Process) Pause() error { return errors.ErrUnsupported }

// Resume returns an error: this system cannot stop a process.
func (p *Process) Resume() error { return errors.ErrUnsupported }

// Dump returns an error: this system has no signal for it.
func (p *Process) Dump() error { return errors.ErrUnsupported }
