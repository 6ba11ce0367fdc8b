package redisserver

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// A Server is a redis-server process without persistence, which ends with its testing.TB. Its
// methods are safe for concurrent use.
type Server struct {
	// Addr is its host:port.
	Addr string
	// Client is a client for other commands than the measured ones.
	Client *redis.Client
}

// Start starts a server, and returns when it replies.
func Start(tb testing.TB) *Server {
	tb.Helper()
	return newServer(tb, redistest.Start(tb))
}

func newServer(tb testing.TB, s *redistest.Server) *Server {
	tb.Helper()
	return &Server{Addr: s.Addr(), Client: s.Client(tb)}
}

// Addrs returns the address of the server.
func (s *Server) Addrs() []string { return []string{s.Addr} }
