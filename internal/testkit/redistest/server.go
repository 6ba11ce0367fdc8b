package redistest

import (
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

const (
	// requireEnv makes a missing redis-server a failure instead of a skip.
	requireEnv = "REQLOCK_REQUIRE_REDIS"
	// programEnv is the path of the redis-server, or of one that is compatible with it,
	// that all tests start. Without it they start that on PATH.
	programEnv = "REQLOCK_REDIS_SERVER"
)

// Server is a redis-server process that belongs to one test.
//
// Its methods are safe for concurrent use, but those that can fail the test
// (all but Addr and Kill) must be called on the goroutine of the test,
// as testing.TB.FailNow demands.
type Server struct {
	tb      testing.TB
	program string
	dir     string
	args    []string
	port    int
	role    role
	busPort int // of a node of a cluster

	admin func() *redis.Client // for commands of this package

	mu     sync.Mutex
	proc   *process // the current run; nil after Kill
	paused bool
}

// Program returns the path of redis-server: that of REQLOCK_REDIS_SERVER, if it is set,
// or that on PATH. If redis-server is not installed, the test is skipped, or fails if
// REQLOCK_REQUIRE_REDIS is set.
func Program(tb testing.TB) string {
	tb.Helper()
	suite.NeverCache() // another server may be installed next time
	name := "redis-server"
	if chosen := os.Getenv(programEnv); chosen != "" {
		name = chosen
	}
	program, err := exec.LookPath(name)
	switch {
	case err == nil:
		return program
	case name != "redis-server":
		tb.Fatalf("%s names no program: %v", programEnv, err)
	}
	const hint = "install redis-server to run this test, e.g. `apt-get install redis-server` or `brew install redis`"
	if os.Getenv(requireEnv) != "" {
		tb.Fatalf("%s is set but redis-server is not on PATH: %s", requireEnv, hint)
	}
	tb.Skipf("redis-server is not on PATH: %s", hint)
	return ""
}

// Start runs redis-server on a free loopback port, without persistence, and
// returns when it answers. The args are added to its command line.
//
// The process is killed by the cleanup of tb. On Linux it also dies with the
// test process, when that ends without cleanup. Where redis-server is not
// installed the test is skipped, or fails if REQLOCK_REQUIRE_REDIS is set.
//
// Start is safe for concurrent use by different tests.
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	program := Program(tb)

	s := newServer(tb, program, args)
	if err := s.start(); err != nil {
		tb.Fatalf("start redis-server: %v\n%s", err, s.log())
	}
	return s
}

// Addr is the host:port of the server. It stays the same over Restart. It is
// safe for concurrent use.
func (s *Server) Addr() string {
	return loopback(s.port)
}

// Client returns a client of the server that the cleanup of tb closes. Its
// options are the defaults of go-redis, retries included, with the password of
// the server if --requirepass sets one, apart from what configure changes.
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
	if err := s.proc.pause(); err != nil {
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
	if err := s.proc.resume(); err != nil {
		s.tb.Fatalf("resume redis-server: %v", err)
	}
	s.paused = false
}

// Kill kills the server, paused or not, and returns when its process has ended. It does
// nothing to a killed server. It is safe for concurrent
// use, from any goroutine.
//
// A go-redis client that often failed to connect tries again once a second, in a goroutine
// that may outlive its Close by that second. suite.Main allows for it. With Proxy.Refuse
// clients do connect.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
}
