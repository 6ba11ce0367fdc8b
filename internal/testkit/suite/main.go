// Package suite runs the tests of a package with the settings of this project.
//
// Each package of tests has one line:
//
//	func TestMain(m *testing.M) { suite.Main(m) }
//
// It runs parallel tests sixteen at a time, because most of them wait, and it fails if
// goroutines are left. There are two tiers: go test ./... runs the fast tier, and
// REQLOCK_FULL=1 go test ./... runs all tests. A test that is long by nature calls
// [Full], which skips it in the fast tier. A test that waits for a condition calls
// [Eventually].
package suite

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// parallel is how many parallel tests of a package run at a time, unless the flag
// -parallel says otherwise. Most of them wait for a server or for a timeout, so this is
// far more than there are cores. With the race detector the processor is the limit, and tests
// that share it are slow: some fail then, as if Redis did not reply.
var parallel = usualParallel()

func usualParallel() int {
	if Race {
		return min(16, 4*runtime.NumCPU())
	}
	return 16
}

// Parallel makes [Main] run n parallel tests at a time, instead of sixteen. It is for packages
// with hundreds of tests that wait for the end of a TTL. It has no effect with the race
// detector. Call it before Main.
func Parallel(n int) {
	if !Race {
		parallel = n
	}
}

// gcPercent lets the heap of tests grow to five times what is live before it is collected. The
// heaps of tests are small, so they would be collected hundreds of times, for a sixth of all
// processor time. Benchmarks collect it as programs do.
const gcPercent = 400

// Main runs the tests of a package and exits: with a failure if goroutines are left, except those
// that the options of goleak ignore.
func Main(m *testing.M, ignore ...goleak.Option) { os.Exit(Run(m, ignore...)) }

// Run is Main without the exit. It returns the exit code.
func Run(m *testing.M, ignore ...goleak.Option) int {
	flag.Parse()
	isSet := false
	flag.Visit(func(f *flag.Flag) { isSet = isSet || f.Name == "test.parallel" })
	if !isSet {
		if err := flag.Set("test.parallel", strconv.Itoa(parallel)); err != nil {
			panic(err) // package testing has no such flag
		}
	}
	if os.Getenv("GOGC") == "" && flag.Lookup("test.bench").Value.String() == "" {
		debug.SetGCPercent(gcPercent)
	}
	code := m.Run()
	exits.run()
	if code == 0 {
		if err := Leaks(lastDial, ignore...); err != nil {
			fmt.Fprintf(os.Stderr, "goroutines are left: %v\n", err)
			code = 1
		}
	}
	if n := skipped.Load(); n > 0 {
		fmt.Printf("%d tests skipped: %s=1 go test runs them\n", n, fullEnv)
	}
	return code
}

// exits are the functions to call after the last test of the package.
var exits stack

// A stack runs functions, the last one first.
type stack struct {
	mu        sync.Mutex
	functions []func()
}

func (s *stack) run() {
	for {
		s.mu.Lock()
		n := len(s.functions)
		if n == 0 {
			s.mu.Unlock()
			return
		}
		last := s.functions[n-1]
		s.functions = s.functions[:n-1]
		s.mu.Unlock()
		last()
	}
}

// OnExit makes Main call a function after the last test of the package, before it checks for
// goroutines that are left. The function ends what the tests shared. OnExit is safe for
// concurrent use.
func OnExit(function func()) {
	exits.mu.Lock()
	defer exits.mu.Unlock()
	exits.functions = append(exits.functions, function)
}

// Fasthttp are options of Main for the goroutines of fasthttp, Fiber's server, that end late or never.
func Fasthttp() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
	}
}

// lastDial is how long a closed client of go-redis may keep a goroutine. A client whose
// server was down dials once a second, and detects only then that it was closed.
const lastDial = 3 * time.Second

// Leaks waits at most this long until no goroutine is left, except those that the options of
// goleak ignore. It returns an error that names the goroutines that are left, or nil. goleak
// itself waits half a second, which is too short on a busy machine, and for clients of a server
// that was killed.
func Leaks(patience time.Duration, ignore ...goleak.Option) error {
	for begun := time.Now(); ; {
		err := goleak.Find(ignore...)
		if err == nil || time.Since(begun) > patience {
			return err
		}
	}
}
