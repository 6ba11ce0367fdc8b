package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/inspect"
)

// The exit statuses.
const (
	exitOK       = 0
	exitError    = 1
	exitUsage    = 2
	exitNotFound = 3
	exitChanged  = 4
)

// A failure is the error of a command with its name.
type failure struct {
	of  *command // nil: of no command
	err error
}

func (f *failure) Error() string {
	text := strings.TrimPrefix(f.err.Error(), "reqlock: ")
	if f.of == nil {
		return "reqlock: " + text
	}
	return "reqlock: " + f.of.name + ": " + text
}

// Unwrap returns the error without the name.
func (f *failure) Unwrap() error { return f.err }

// A usageError says that the command line is wrong.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

// misuse returns a usageError.
func misuse(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// A silentError is a failure that has been printed. Its value is the exit status.
type silentError int

func (silentError) Error() string { return "" }

// report prints an error, and returns the exit status.
func (s *session) report(err error) int {
	var silent silentError
	if errors.As(err, &silent) {
		return int(silent)
	}
	status := statusOf(err)
	if err == nil {
		return status
	}
	if text := err.Error(); text != "" {
		fmt.Fprintln(s.problems, text)
	}
	var f *failure
	if status == exitUsage && errors.As(err, &f) {
		if f.of == nil {
			fmt.Fprintln(s.problems, usage)
		} else {
			fmt.Fprintln(s.problems, f.of.usage())
		}
	}
	return status
}

// statusOf returns the exit status of an error.
func statusOf(err error) int {
	var wrong *usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &wrong):
		return exitUsage
	case errors.Is(err, core.ErrNotFound), errors.Is(err, inspect.ErrNotFound):
		return exitNotFound
	case errors.Is(err, core.ErrChanged), errors.Is(err, inspect.ErrChanged), errors.Is(err, core.ErrBusy):
		return exitChanged
	default:
		return exitError
	}
}

// interrupted returns a better text for the end of a context.
func interrupted(err error, c *call) error {
	switch {
	case errors.Is(err, core.ErrUnavailable): // its text says what may have happened
		return err
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("it took longer than --timeout %v", c.timeout)
	default:
		return err
	}
}
