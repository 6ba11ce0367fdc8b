package core

import (
	"runtime"
	"strconv"
	"strings"
)

// WithCaller sets whether each lease records the code that took it, as
// "/app/transfer.go:42 (main.transfer)". It is off if not set, because it costs some
// microseconds for each lock. Turn it on to find the owner of a lease that is never released.
// HeldLong and Closing events, and the error of Close, contain it. For a lease of a middleware
// it is the code that made the middleware.
func WithCaller(on bool) Option {
	return option(func(s *settings) error {
		s.caller = on
		return nil
	})
}

// module is the path of this module.
const module = "github.com/reqlock/reqlock/"

// adapters are the packages of middlewares.
var adapters = [...]string{"nethttplock.", "ginlock.", "echolock.", "grpclock.", "protolock.", "adapter.", "internal/adapter/"}

// caller returns the code that takes a lease, or "" without WithCaller.
func (l *Locker) caller() string {
	if !l.settings.caller {
		return ""
	}
	code, byAdapter := callerOf()
	if byAdapter && l.settings.madeBy != "" {
		return l.settings.madeBy
	}
	return code
}

// callerOf returns the first code on the stack that is neither this package nor an adapter,
// and whether an adapter has called this package.
func callerOf() (code string, byAdapter bool) {
	var counters [64]uintptr
	frames := runtime.CallersFrames(counters[:runtime.Callers(2, counters[:])])
	for {
		frame, more := frames.Next()
		own, isModule := strings.CutPrefix(frame.Function, module)
		switch {
		case isModule && strings.HasPrefix(own, "core."):
		case isModule && isAdapter(own):
			byAdapter = true
		default:
			return frame.File + ":" + strconv.Itoa(frame.Line) + " (" + frame.Function + ")", byAdapter
		}
		if !more {
			return "", byAdapter
		}
	}
}

// isAdapter reports whether a function of this module belongs to an adapter.
func isAdapter(function string) bool {
	for _, adapter := range adapters {
		if strings.HasPrefix(function, adapter) {
			return true
		}
	}
	return false
}
