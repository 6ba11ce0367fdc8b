package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/reqlock/reqlock/tests/bench/internal/lock"
	"github.com/reqlock/reqlock/tests/bench/internal/redisserver"
	"github.com/reqlock/reqlock/tests/bench/internal/report"
)

// printSetting prints where and how the runs are made, and the versions and settings of what is
// compared.
func (p program) printSetting(tb testing.TB) {
	tb.Helper()
	version, err := redisserver.Start(tb).Version(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	fmt.Fprintf(p.out, "%s on %s/%s with %d CPUs, which Redis %s shares. Medians of %d runs of %v each.\n\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), version, p.repetitions, p.window)

	table := report.Table{Left: 3}
	table.Row("", "version", "setting")
	kinds := append(lock.Kinds(),
		lock.Kind{
			Name: "Fiber idempotency", Module: "github.com/gofiber/fiber/v3",
			Setting: "its defaults, except for the header Idempotency-Key: a lock within one process, and no fingerprint",
		},
		lock.Kind{
			Name: "Fiber storage/redis", Module: "github.com/gofiber/storage/redis/v3",
			Setting: "on a client with the defaults of go-redis",
		})
	versions := moduleVersions()
	for _, kind := range kinds {
		table.Row(kind.Name, versions[kind.Module], kind.Setting)
	}
	table.Print(p.out)
}

// moduleVersions returns the versions of the modules in this program.
func moduleVersions() map[string]string {
	versions := make(map[string]string)
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			versions[module.Path] = module.Version
			if module.Replace != nil {
				versions[module.Path] = "this tree"
			}
		}
	}
	return versions
}
