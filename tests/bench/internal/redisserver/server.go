package redisserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/child"
)

const (
	// startTime is how long a server may take to reply.
	startTime = 15 * time.Second
	// startPoll is how often that is checked.
	startPoll = 10 * time.Millisecond
	// startAttempts is how often a server is started if it ends at once, as it does if
	// another process has taken its port.
	startAttempts = 5
)

// A Server is a redis-server process without persistence. Its methods are safe
// for concurrent use.
type Server struct {
	// Addr is its host:port.
	Addr string
	// Client is a client for other commands than the measured ones.
	Client *redis.Client

	ports   ports
	process *child.Process
	dir     string
}

// Ports are the ports of a server.
type ports struct {
	clients int
	bus     int // for the other nodes of its cluster; 0 without a cluster
}

// Start starts redis-server, which must be on PATH, and returns when it replies. On Linux
// it ends with this process, even if this process is killed.
func Start(ctx context.Context) (*Server, error) { return startOn(ctx, freePort) }

// startOn is Start on ports that choose returns for each attempt.
func startOn(ctx context.Context, choose func(context.Context) (ports, error)) (*Server, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("%w; install it, e.g. with `apt-get install redis-server` or `brew install redis`", err)
	}
	dir, err := os.MkdirTemp("", "reqlock-bench-redis-")
	if err != nil {
		return nil, err
	}
	for range startAttempts {
		var (
			server *Server
			p      ports
		)
		if p, err = choose(ctx); err != nil {
			break
		}
		if server, err = start(ctx, program, dir, p); err == nil {
			return server, nil
		}
		if !errors.Is(err, errExited) {
			break
		}
	}
	log, _ := os.ReadFile(filepath.Join(dir, logName)) //nolint:gosec // in a directory of our own
	_ = os.RemoveAll(dir)
	return nil, fmt.Errorf("start redis-server: %w\n%s", err, log)
}

// logName is the file for the output of a server.
const logName = "redis-server.log"

var (
	errExited  = errors.New("it has ended at once")
	errForeign = errors.New("another server answers on its port")
)

// start runs one server.
func start(ctx context.Context, program, dir string, p ports) (*Server, error) {
	args := []string{
		"--port", strconv.Itoa(p.clients), "--bind", loopback,
		"--save", "", "--appendonly", "no", "--dir", dir,
	}
	if p.bus != 0 {
		args = append(args, nodeArgs(p)...)
	}
	process, err := startProcess(ctx, program, filepath.Join(dir, logName), args...)
	if err != nil {
		return nil, err
	}
	s := &Server{
		Addr:    net.JoinHostPort(loopback, strconv.Itoa(p.clients)),
		ports:   p,
		process: process,
		dir:     dir,
	}
	if err := s.await(ctx); err != nil {
		process.Kill()
		return nil, err
	}
	s.Client = redis.NewClient(&redis.Options{Addr: s.Addr})
	if err := s.isChild(ctx); err != nil {
		_ = s.Client.Close()
		process.Kill()
		return nil, err
	}
	return s, nil
}

// loopback is the address of all servers.
const loopback = "127.0.0.1"

// freePort returns a free port for clients.
func freePort(ctx context.Context) (ports, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return ports{}, fmt.Errorf("find a free port: %w", err)
	}
	defer func() { _ = listener.Close() }()
	return ports{clients: listener.Addr().(*net.TCPAddr).Port}, nil
}

// await returns when a process listens on the server's port. It dials before a client does,
// since a client logs each failure.
func (s *Server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.Addr)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-s.process.Done():
			return errExited
		case <-ctx.Done():
			return fmt.Errorf("no answer in %v: %w", startTime, err)
		case <-time.After(startPoll):
		}
	}
}

// isChild returns nil if the server that replies is the started process, and not another
// one that has taken the port.
func (s *Server) isChild(ctx context.Context) error {
	info, err := s.info(ctx, "server")
	if err != nil {
		select {
		case <-s.process.Done(): // a node listens for clients before it fails to listen for nodes
			return fmt.Errorf("%w: %w", errExited, err)
		default:
			return err
		}
	}
	if info["process_id"] != strconv.Itoa(s.process.Pid()) {
		return fmt.Errorf("%w: %w", errExited, errForeign)
	}
	return nil
}

// Addrs returns the address of the server.
func (s *Server) Addrs() []string { return []string{s.Addr} }

// Stop kills the server, and returns when it has ended.
func (s *Server) Stop() error {
	err := s.Client.Close()
	s.process.Kill()
	if removed := os.RemoveAll(s.dir); err == nil {
		err = removed
	}
	return err
}
