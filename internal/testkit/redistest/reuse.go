package redistest

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// unused has the servers of the package that no test has at the moment.
var unused pool

// A pool has running servers without a test. It is safe for concurrent use.
type pool struct {
	mu      sync.Mutex
	servers []*Server
}

// Reuse returns an empty server without arguments, as Start does. The server may be one that an
// earlier test of the package had: to clear it takes a tenth of the processor time of a start. It
// ends after the last test of the package, which must have [suite.Main] or [suite.Run] as its
// TestMain.
//
// Use it in tests that change nothing but data. Use Start in tests that kill, pause, restart or
// configure the server, or that depend on its age. No test gets a server that another test has
// changed in this way, or the server of a failed test.
//
// Reuse is safe for concurrent use by different tests.
func Reuse(tb testing.TB) *Server {
	tb.Helper()
	program := Program(tb)
	owner := unused.take(program)
	if owner == nil {
		lifetime := &processLifetime{TB: tb, starting: true}
		owner = newServer(lifetime, program, nil)
		owner.mustStart()
		lifetime.starting = false
	}
	s := newServer(tb, program, nil)
	s.dir, s.port, s.proc = owner.dir, owner.port, owner.proc
	tb.Cleanup(func() { // before s.Kill
		if s.giveBack(tb, owner) {
			unused.put(owner)
		}
	})
	return s
}

func (p *pool) put(s *Server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.servers = append(p.servers, s)
}

// take removes a server of the program that still runs, and returns it, or nil. It also removes
// those that it has looked at before.
func (p *pool) take(program string) *Server {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n := len(p.servers); n > 0; n = len(p.servers) {
		last := p.servers[n-1]
		p.servers = p.servers[:n-1]
		if last.program == program && !last.proc.HasEnded() {
			return last
		}
	}
	return nil
}

// giveBack clears the server for another test. It returns false if the test has failed, or has
// changed the server in another way than by data. Then the server is killed.
func (s *Server) giveBack(tb testing.TB, owner *Server) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != owner.proc || s.paused || tb.Failed() || !s.clear() {
		return false
	}
	s.proc = nil
	return true
}

// changing matches the statistics of the commands that change the server, and not only data,
// scripts and the connection that sends them. It cannot see those before a CONFIG RESETSTAT.
var changing = regexp.MustCompile(`(?m)^cmdstat_(acl\||bgrewriteaof|bgsave|client\|pause|cluster\||` +
	`config\|rewrite|config\|set|debug|failover|function\||module\||psync|replicaof|save|shutdown|slaveof|swapdb|sync)`)

// clear removes the data and scripts, ends all other connections, and resets the statistics. It
// reports false if that fails, or if a command has changed more. The caller holds s.mu.
//
// Its connection is a new one. So the server has accepted those that the test has made, and runs
// no command of theirs afterwards.
func (s *Server) clear() bool {
	ctx := context.Background()
	options := redis.Options{Addr: s.Addr(), MaxRetries: -1, Protocol: 2, DisableIdentity: true}
	if user := s.administrator(); user != "" {
		options.Username, options.Password = user, noPassword
	}
	rdb := redis.NewClient(&options)
	defer func() { _ = rdb.Close() }()
	var stats *redis.StringCmd
	_, err := rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Do(ctx, "client", "kill", "type", "normal")
		pipe.Do(ctx, "client", "kill", "type", "pubsub")
		pipe.FlushAll(ctx)
		pipe.ScriptFlush(ctx)
		stats = pipe.Info(ctx, "commandstats")
		pipe.ConfigResetStat(ctx)
		return nil
	})
	return err == nil && !changing.MatchString(stats.Val())
}

// shared holds the deployments that the tests of this process share, by their kind.
var shared [len(kindNames)]struct {
	mu         sync.Mutex
	deployment *Deployment // nil until the first test needs it
}

// Shared returns the servers of the kind that all tests of the package share. The first
// call starts them. They end after the last test of the package, which must have
// [suite.Main] or [suite.Run] as its TestMain.
//
// A test on shared servers uses keys that no other test uses (see [OwnPrefix]), because
// parallel tests run beside it and because -count repeats the test on the same servers.
// It must not kill, pause, restart, reconfigure or flush a server, replace a master, move
// a slot or count commands of a server. It may start a proxy of its own and do anything
// to that.
//
// If the servers cannot be started, Shared fails the test tb. A method of the deployment
// that fails later panics, because the deployment belongs to no test. Shared is safe for
// concurrent use by different tests.
func Shared(tb testing.TB, kind Kind) *Deployment {
	tb.Helper()
	entry := &shared[kind]
	entry.mu.Lock()
	defer entry.mu.Unlock() // also if the start fails: the next test tries again
	if entry.deployment == nil {
		lifetime := &processLifetime{TB: tb, starting: true}
		deployment := kind.Start(lifetime)
		lifetime.starting = false
		entry.deployment = deployment
	}
	return entry.deployment
}

// processLifetime is the testing.TB of shared servers: its cleanups run after the last
// test of the package.
type processLifetime struct {
	testing.TB // the test that starts the servers

	starting bool // false once the servers run; no goroutine of theirs reads it
}

// Helper does nothing: the caller of a shared server is not always the same test.
func (*processLifetime) Helper() {}

// Context returns a context that does not end.
func (*processLifetime) Context() context.Context { return context.Background() }

// Cleanup defers the function until all tests of the package are over.
func (*processLifetime) Cleanup(function func()) { suite.OnExit(function) }

// TempDir returns a new folder that exists until all tests of the package are over.
func (l *processLifetime) TempDir() string {
	dir, err := os.MkdirTemp("", "redistest")
	if err != nil {
		l.Fatalf("make a folder for a shared server: %v", err)
	}
	suite.OnExit(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Fatalf fails the test that starts the servers, and panics if they have started.
func (l *processLifetime) Fatalf(format string, args ...any) {
	if l.starting {
		l.TB.Helper()
		l.TB.Fatalf(format, args...)
	}
	panic("shared servers: " + fmt.Sprintf(format, args...))
}

// Errorf does what Fatalf does.
func (l *processLifetime) Errorf(format string, args ...any) { l.Fatalf(format, args...) }

// ownPrefixes counts the prefixes that OwnPrefix has returned.
var ownPrefixes atomic.Int64

// OwnPrefix returns a prefix of keys that no other call in this process returns. The
// [Rights] cover it.
func OwnPrefix() string {
	return "reqlock:" + strconv.FormatInt(ownPrefixes.Add(1), 10) + ":"
}
