package report

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/reqlock/reqlock/tests/bench/internal/idempotent"
	"github.com/reqlock/reqlock/tests/bench/internal/lock"
)

// A Setting describes where and how the runs were made.
type Setting struct {
	Go          string
	System      string
	CPUs        int
	Redis       string
	Locks       []LockSetting
	Middlewares []MiddlewareSetting
	Window      time.Duration
	Repetitions int
	Rounds      int // of a burst
}

// A LockSetting describes a lock and its settings.
type LockSetting struct {
	Name    lock.Name
	Module  string
	Version string
	Setting string
}

// A MiddlewareSetting describes a middleware for idempotent requests and its settings.
type MiddlewareSetting struct {
	idempotent.Middleware
	Version string
}

// NewSetting describes this program on this machine.
func NewSetting(redisVersion string, window time.Duration, repetitions, rounds int) Setting {
	s := Setting{
		Go:          runtime.Version(),
		System:      runtime.GOOS + "/" + runtime.GOARCH,
		CPUs:        runtime.NumCPU(),
		Redis:       redisVersion,
		Window:      window,
		Repetitions: repetitions,
		Rounds:      rounds,
	}
	versions := make(map[string]string)
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			versions[module.Path] = module.Version
			if module.Replace != nil {
				versions[module.Path] = "this tree"
			}
		}
	}
	for _, kind := range lock.Kinds() {
		s.Locks = append(s.Locks, LockSetting{kind.Name, kind.Module, versions[kind.Module], kind.Setting})
	}
	for _, middleware := range idempotent.Middlewares() {
		s.Middlewares = append(s.Middlewares, MiddlewareSetting{middleware, versions[middleware.Module]})
	}
	return s
}

// Print describes the comparison.
func (s Setting) Print(w io.Writer) {
	fmt.Fprintf(w, "%s on %s with %d CPUs, which Redis %s shares. Medians of %d runs of %v each.\n\n",
		s.Go, s.System, s.CPUs, s.Redis, s.Repetitions, s.Window)
	t := newTable("lock", "version", "setting")
	t.left = 3
	for _, l := range s.Locks {
		t.row(string(l.Name), l.Version, l.Setting)
	}
	t.print(w)
	t = newTable("idempotency", "version", "setting")
	t.left = 3
	for _, m := range s.Middlewares {
		t.row(m.Name, m.Version, m.Setting)
	}
	t.print(w)
}
