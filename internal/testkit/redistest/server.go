package redistest

import (
	"cmp"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/child"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// programEnv is the path of the program that all tests start: redis-server, or one that is
// compatible with it. Without it, tests start the redis-server on PATH.
const programEnv = "REQLOCK_REDIS_SERVER"

// Server is a redis-server process that belongs to one test. The process of a server that [Reuse]
// returns belongs to one test at a time.
//
// Its methods are safe for concurrent use. All methods except Addr and Kill can fail the test.
// Call them on the goroutine of the test, as testing.TB.FailNow demands.
type Server struct {
	tb      testing.TB
	program string
	dir     string
	args    []string
	port    int
	role    role
	busPort int // in cluster mode

	admin func() *redis.Client // for commands of this package

	mu     sync.Mutex
	proc   *child.Process // the current run; nil after Kill
	paused bool
}

// Program returns the path of redis-server: REQLOCK_REDIS_SERVER if it is set, and otherwise the
// redis-server on PATH. If redis-server is not installed, the test is skipped, or fails if
// REQLOCK_REQUIRE_REDIS is set.
func Program(tb testing.TB) string {
	tb.Helper()
	name, program, err := lookUp()
	switch {
	case err == nil:
		return program
	case name != defaultProgram:
		tb.Fatalf("%s names no program: %v", programEnv, err)
	}
	suite.SkipOrFail(tb, "redis-server is not on PATH: install it, e.g. `apt-get install redis-server` or `brew install redis`")
	return ""
}

// IsInstalled reports whether Program finds a redis-server.
func IsInstalled() bool {
	_, _, err := lookUp()
	return err == nil
}

// defaultProgram is the name of the program on PATH.
const defaultProgram = "redis-server"

func lookUp() (name, program string, err error) {
	name = cmp.Or(os.Getenv(programEnv), defaultProgram)
	program, err = exec.LookPath(name)
	return name, program, err
}

// Start runs redis-server on a free loopback port, without persistence, and returns when it
// answers. The args are added to the command line of redis-server.
//
// The cleanup of tb kills the process. On Linux the process also ends if the test process ends
// without its cleanups. If redis-server is not installed, the test is skipped, or fails if
// REQLOCK_REQUIRE_REDIS is set.
//
// Start is safe for concurrent use by different tests.
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	return StartProgram(tb, Program(tb), args...)
}

// StartProgram is Start for the program at a path, whatever REQLOCK_REDIS_SERVER is.
func StartProgram(tb testing.TB, program string, args ...string) *Server {
	tb.Helper()
	s := newServer(tb, program, args)
	s.mustStart()
	return s
}

// Addr returns the host:port of the server, which Restart does not change.
func (s *Server) Addr() string {
	return loopback(s.port)
}

// Client returns a client of the server, which the cleanup of tb closes. Its options are the
// defaults of go-redis, including retries, and the password of the server if --requirepass sets
// one, except those that configure changes.
func (s *Server) Client(tb testing.TB, configure ...func(*redis.Options)) *redis.Client {
	tb.Helper()
	return newClient(tb, redis.Options{Addr: s.Addr(), Password: s.password()}, s.administrator(), configure)
}

// Pause stops the process of the server: its connections stay open, the system still accepts
// new connections, and there are no replies until Resume. On Linux the process is stopped
// when Pause returns. It works only on unix systems.
func (s *Server) Pause() {
	s.tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		s.tb.Fatalf("pause redis-server: it is not running")
	}
	if err := s.proc.Pause(); err != nil {
		s.tb.Fatalf("pause redis-server: %v", err)
	}
	s.paused = true
}

// Resume resumes a paused server, which then executes the commands received meanwhile.
func (s *Server) Resume() {
	s.tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		s.tb.Fatalf("resume redis-server: it is not running")
	}
	if err := s.proc.Resume(); err != nil {
		s.tb.Fatalf("resume redis-server: %v", err)
	}
	s.paused = false
}

// Kill kills the server, paused or not, and returns when its process has ended. It does nothing
// to a killed server. It may be called from any goroutine.
//
// A go-redis client that often failed to connect tries again once a second, in a goroutine that
// may end up to a second after the Close of the client. suite.Main waits for such goroutines.
// Proxy.Refuse has no such effect, because clients can connect to the proxy.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
}

// newClient returns a client that lives as long as tb.
//
// The options are the defaults of go-redis, except the given ones and those that configure
// changes. In particular MaxRetries keeps its default, which production code has, too: a
// lock must be correct although go-redis sends commands twice.
func newClient(tb testing.TB, options redis.Options, administrator string, configure []func(*redis.Options)) *redis.Client {
	tb.Helper()
	for _, change := range configure {
		change(&options)
	}
	return open(tb, administrator, &options.Username, &options.Password, func() *redis.Client {
		o := options
		return redis.NewClient(&o)
	})
}

// open returns a client that lives as long as tb. connect creates it with the options that
// contain username and password.
//
// If the server restricts the default user, administrator is the user that sends the
// commands of the test itself: see route.
func open[C redis.UniversalClient](tb testing.TB, administrator string, username, password *string, connect func() C) C {
	tb.Helper()
	client := connect()
	closeWith(tb, client)
	if administrator != "" && *username == "" && *password == "" {
		*username, *password = administrator, noPassword
		admin := connect()
		closeWith(tb, admin)
		route(tb, client, admin)
	}
	return client
}

func closeWith(tb testing.TB, client io.Closer) {
	tb.Helper()
	tb.Cleanup(func() {
		// The test may have closed the client itself.
		if err := client.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
			tb.Errorf("close redis client: %v", err)
		}
	})
}
