package locktest

import (
	"context"
	"net"
	"sync"
	"syscall"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// maxConns is more connections than a test opens. A client without free connections uses
// timers that all clients of the program share, and such timers must not be used both inside
// and outside a synctest bubble.
const maxConns = 4096

// bufferSize is the size of a connection's buffers, in bytes. Commands of a lock are small,
// except scripts.
const bufferSize = 4096

// A link is a client of the embedded Redis. Its connections can be cut.
type link struct {
	client *redis.Client
	server *miniredis.Miniredis

	switching sync.Mutex // held by cut and mend; locked before mu

	mu    sync.Mutex
	down  bool
	conns map[*conn]struct{}
}

// newLink returns a link to the server. Its client has no timeouts, no retries and no checks,
// so all goroutines of a synctest bubble are blocked between two commands.
func newLink(server *miniredis.Miniredis) *link {
	l := &link{server: server, conns: make(map[*conn]struct{})}
	l.client = redis.NewClient(&redis.Options{
		Dialer:                   l.dial,
		MaxRetries:               -1,
		ReadTimeout:              -2,
		WriteTimeout:             -2,
		ConnMaxIdleTime:          -1,
		PoolSize:                 maxConns,
		ReadBufferSize:           bufferSize,
		WriteBufferSize:          bufferSize,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	return l
}

// dial returns a new connection. While the link is down it returns a connection on which each use
// fails as on a refused connection. It does not return an error, because go-redis would print
// the error on the standard error of the test.
func (l *link) dial(context.Context, string, string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return newFailedConn(), nil
	}
	end, err := l.server.Dial()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: end, link: l}
	l.conns[c] = struct{}{}
	return c, nil
}

// cut closes all connections and refuses new ones.
func (l *link) cut() {
	l.switching.Lock()
	defer l.switching.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
	for c := range l.conns {
		c.fail(&net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET})
	}
	clear(l.conns)
}

// mend allows new connections. It first uses up the failed ones in the client's pool, so that no
// command of the test gets one.
func (l *link) mend() {
	l.switching.Lock()
	defer l.switching.Unlock()
	if !l.isDown() {
		return
	}
	for l.client.PoolStats().IdleConns > 0 {
		_ = l.client.Ping(context.Background()).Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = false
}

// isDown reports whether the link is cut.
func (l *link) isDown() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.down
}

// close closes the client and all connections that are left.
func (l *link) close() {
	_ = l.client.Close()
	l.cut()
}
