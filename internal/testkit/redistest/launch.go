package redistest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/child"
)

// startAttempts is how often a server is started if it exits at once: another program may
// have taken its port.
const startAttempts = 5

// role is the role of a redis-server process.
type role int

const (
	single      role = iota
	clusterNode      // listens on a second port, the bus of the cluster
	sentinel         // has a configuration file, and no data
)

// newServer returns a server that does not run yet. The cleanup of tb kills it.
func newServer(tb testing.TB, program string, args []string) *Server {
	tb.Helper()
	// TempDir comes first: cleanups run in reverse order, and the folder must outlive the
	// process.
	s := &Server{tb: tb, program: program, dir: tb.TempDir(), args: slices.Clone(args)}
	s.admin = sync.OnceValue(func() *redis.Client {
		options := redis.Options{
			Addr:        s.Addr(),
			Password:    s.password(),
			MaxRetries:  -1,
			ReadTimeout: readyTimeout,
		}
		if user := s.administrator(); user != "" {
			options.Username, options.Password = user, noPassword
		}
		return newClient(tb, options, "", nil)
	})
	tb.Cleanup(s.Kill)
	return s
}

func (s *Server) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	for range startAttempts {
		if s.port, err = FreePort(s.tb); err != nil {
			return err
		}
		if s.hasBus() {
			// By default the port of the bus is 10000 above. Outgoing connections and other
			// servers may use that port.
			if s.busPort, err = FreePort(s.tb); err != nil {
				return err
			}
		}
		if err = s.launch(); !errors.Is(err, errExited) {
			return err
		}
	}
	return err
}

// mustStart is start. A failure fails the test, with the output of the server.
func (s *Server) mustStart() {
	s.tb.Helper()
	if err := s.start(); err != nil {
		s.tb.Fatalf("start redis-server: %v\n%s", err, s.log())
	}
}

func (s *Server) hasBus() bool {
	return s.role == clusterNode || slices.Contains(s.args, "--cluster-enabled")
}

// launch starts one run on the ports of the server, and waits until it answers. After a
// failure no process is left. The caller holds s.mu.
func (s *Server) launch() error {
	proc, err := startProcess(s.program, s.logPath(), s.arguments())
	if err != nil {
		return err
	}
	s.proc = proc
	if err := awaitReady(proc, s.Addr(), s.administrator()); err != nil {
		s.end()
		return fmt.Errorf("wait for %s: %w", s.Addr(), err)
	}
	if s.role == sentinel {
		if err := s.shortenPeriods(); err != nil {
			s.end()
			return fmt.Errorf("set up the sentinel %s: %w", s.Addr(), err)
		}
	}
	return nil
}

func (s *Server) arguments() []string {
	args := []string{"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir}
	switch s.role {
	case sentinel:
		// The file must be the first argument.
		args = slices.Concat([]string{s.configPath()}, args, []string{"--sentinel"})
	case clusterNode:
		args = append(args, "--cluster-enabled", "yes")
		fallthrough
	default:
		args = append(args, "--save", "", "--appendonly", "no")
	}
	if s.hasBus() {
		args = append(args, "--cluster-port", strconv.Itoa(s.busPort))
	}
	if s.role != sentinel {
		args = append(args, restricted(s.args, s.hasBus())...)
	}
	return append(args, s.args...)
}

// end kills the current run, if there is one. The caller holds s.mu.
func (s *Server) end() {
	if s.proc != nil {
		s.proc.Kill()
		s.proc = nil
	}
	s.paused = false
}

// password returns the value of --requirepass, or "".
func (s *Server) password() string {
	if i := slices.Index(s.args, "--requirepass"); i >= 0 && i+1 < len(s.args) {
		return s.args[i+1]
	}
	return ""
}

// configPath is the configuration file of a sentinel, which the sentinel rewrites.
func (s *Server) configPath() string {
	return filepath.Join(s.dir, "sentinel.conf")
}

func (s *Server) logPath() string {
	return filepath.Join(s.dir, "redis-server.log")
}

func (s *Server) log() string {
	text, err := os.ReadFile(s.logPath())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func startProcess(program, logPath string, args []string) (*child.Process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600) //nolint:gosec // in the directory of the test
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	// The child has its own copy of the descriptor.
	defer func() { _ = log.Close() }()

	// The background context, because the context of the test ends before the cleanups.
	cmd := exec.CommandContext(context.Background(), program, args...) //nolint:gosec // the program is redis-server
	cmd.Stdout = log
	cmd.Stderr = log
	p, err := child.Start(cmd)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	return p, nil
}

// The ports for servers are below the range of outgoing connections (32768 and up on Linux,
// 49152 and up elsewhere). So no connection can have the port of a killed server when the
// server restarts.
const (
	firstPort = 20000
	lastPort  = 32000
)

// FreePort returns a free loopback port. Until the cleanup of tb no other test of any process
// gets this port, even if it is free: a killed server can restart, and its clients meet no
// other server meanwhile. Other programs may take the port, and the caller must handle
// that.
func FreePort(tb testing.TB) (int, error) {
	var err error
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort) //nolint:gosec // not a secret
		if err = reserve(tb, port); err == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("find a free port: %w", err)
}

// reserve reserves a free port until the cleanup of tb. A UDP socket marks the reservation.
// No server uses UDP, and the socket ends with the process.
func reserve(tb testing.TB, port int) error {
	var config net.ListenConfig
	mark, err := config.ListenPacket(context.Background(), "udp", loopback(port))
	if err != nil {
		return err
	}
	listener, err := config.Listen(context.Background(), "tcp", loopback(port))
	if err == nil {
		err = listener.Close()
	}
	if err != nil {
		return errors.Join(err, mark.Close())
	}
	tb.Cleanup(func() { _ = mark.Close() })
	return nil
}

func loopback(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
