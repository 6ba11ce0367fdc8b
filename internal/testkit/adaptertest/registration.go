package adaptertest

import (
	"strings"
	"testing"
)

// ForeignOption is an option of an adapter that does not exist.
type ForeignOption struct{}

// ReqlockOption marks an option of reqlock.
func (ForeignOption) ReqlockOption() {}

// ForeignOptionText is a part of the panic of an adapter that gets a ForeignOption.
const ForeignOptionText = "adaptertest.ForeignOption is an option of another adapter"

// WantPanic fails the test unless a registration panics with an error of reqlock that
// contains a text.
func WantPanic(tb testing.TB, register func(), want string) {
	tb.Helper()
	text := PanicText(register)
	if !strings.HasPrefix(text, "reqlock: ") || !strings.Contains(text, want) {
		tb.Errorf("panic %q does not contain %q", text, want)
	}
}

// PanicText returns the text of the panic of a function, or "".
func PanicText(f func()) (text string) {
	defer func() {
		switch caught := recover().(type) {
		case string:
			text = caught
		case error:
			text = caught.Error()
		}
	}()
	f()
	return ""
}
