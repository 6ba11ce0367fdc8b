package core

import (
	"runtime"
	"strconv"
	"strings"
)

// WithCaller sets whether each lease records the code that took it, as
// "/app/transfer.go:42 (main.transfer)". It is off if not set, because it costs some
// microseconds for each lock. Turn it on to find the holder of a lease that is never released.
// HeldLong and Closing events, and the error of Close, contain it. For a lease of a middleware
// it is the code that made the middleware.
func WithCaller(on bool) Option {
	return option(func(s *settings) error {
		s.caller = on
		return nil
	})
}

// caller returns the code that takes a lease, or "" without WithCaller.
func (l *Locker) caller() string {
	switch {
	case !l.settings.caller:
		return ""
	case l.settings.madeBy != "":
		return l.settings.madeBy
	}
	return callerOf(false)
}

// The packages that take leases for others.
const (
	thisPackage    = "github.com/reqlock/reqlock/core"
	adapterPackage = "github.com/reqlock/reqlock/adapter"
)

// callerOf returns the first code on the stack that is neither in this package nor in package adapter.
// If ofAdapter is true, the package that has called package adapter is an adapter, and does not count
// either, unless it is the whole program.
func callerOf(ofAdapter bool) (code string) {
	var counters [64]uintptr
	frames := runtime.CallersFrames(counters[:runtime.Callers(2, counters[:])])
	own := ""
	for {
		frame, more := frames.Next()
		switch at := packageOf(frame.Function); {
		case at == thisPackage, at == adapterPackage:
		case at == "runtime", at == "testing":
			return code
		case ofAdapter && (own == "" || own == at):
			own, code = at, codeOf(frame)
		default:
			return codeOf(frame)
		}
		if !more {
			return code
		}
	}
}

// packageOf returns the path of the package of a function: "example.com/app" of
// "example.com/app.main.func1".
func packageOf(function string) string {
	last := strings.LastIndexByte(function, '/') + 1
	name, _, _ := strings.Cut(function[last:], ".")
	return function[:last] + name
}

// codeOf returns the place of a frame in the source, and its function.
func codeOf(frame runtime.Frame) string {
	return frame.File + ":" + strconv.Itoa(frame.Line) + " (" + frame.Function + ")"
}
