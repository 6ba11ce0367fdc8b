package redistest

import (
	"context"
	"regexp"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/child"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A run is a redis-server process without arguments of a test. It lives as long as the tests of
// the package, and one test after the other has it: to clear a server takes a tenth of the time
// that a new one needs.
type run struct {
	program string
	dir     string
	port    int
	proc    *child.Process
}

// unused has the runs that no test has at the moment.
var unused struct {
	mu   sync.Mutex
	runs []run
}

// takeRun returns an unused run of the program.
func takeRun(program string) (run, bool) {
	unused.mu.Lock()
	defer unused.mu.Unlock()
	for n := len(unused.runs); n > 0; n = len(unused.runs) {
		last := unused.runs[n-1]
		unused.runs = unused.runs[:n-1]
		if last.program == program && !last.proc.HasEnded() {
			return last, true
		}
	}
	return run{}, false
}

// startReusable returns a server without data, connections or arguments: one that the tests
// before have left as it was when it started, or a new one.
func startReusable(tb testing.TB, program string) *Server {
	tb.Helper()
	s := newServer(tb, program, nil)
	first, found := takeRun(program)
	if found {
		s.dir, s.port, s.proc = first.dir, first.port, first.proc
	} else {
		s.dir = (&processLifetime{TB: tb, starting: true}).TempDir()
		s.mustStart()
		suite.OnExit(s.proc.Kill)
		first = s.run()
	}
	tb.Cleanup(func() { _ = s.giveBack(tb, first) }) // before s.Kill
	return s
}

// giveBack clears the server for the next test, which gets the run. It returns false if the test
// has failed, or has changed the server in another way than by data. Then the server is killed.
func (s *Server) giveBack(tb testing.TB, first run) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != first.proc || s.paused || tb.Failed() || !s.clear() {
		return false
	}
	s.proc = nil
	unused.mu.Lock()
	defer unused.mu.Unlock()
	unused.runs = append(unused.runs, first)
	return true
}

// run returns the run that the server has.
func (s *Server) run() run { return run{s.program, s.dir, s.port, s.proc} }

// changing matches the statistics of each command that changes more than data, scripts and the
// connection that sends it.
var changing = regexp.MustCompile(`(?m)^cmdstat_(acl\||bgsave|client\|pause|cluster\||config\|set|debug|failover|function\||module\||psync|replicaof|save|shutdown|slaveof|swapdb)`)

// clear removes the data and scripts, ends all other connections, and resets the statistics. It
// reports false if that fails, or if a command has changed more. The caller holds s.mu.
//
// Its connection is a new one. So the server has accepted those that the test has made, and runs
// no command of theirs afterwards.
func (s *Server) clear() bool {
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
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
