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

// maxConns is more connections than a test opens. A client that runs out of
// them uses timers that it shares with all others of the program, which may
// not cross the border of a synctest bubble.
const maxConns = 4096

// bufferSize is that of a connection, in bytes; commands of a lock are small, but for its scripts.
const bufferSize = 4096

// A link is a client of the embedded Redis over wires that can be cut.
type link struct {
	client *redis.Client
	server *miniredis.Miniredis

	switching sync.Mutex // one cut or mend at a time; taken before mu

	mu    sync.Mutex
	down  bool
	wires map[*wire]struct{}
}

// newLink returns a link to the server. Nothing in it ticks: it has no
// timeouts, no retries and no checks of its own, so a synctest bubble comes to
// rest between two commands.
func newLink(server *miniredis.Miniredis) *link {
	l := &link{server: server, wires: make(map[*wire]struct{})}
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

// dial returns a new wire. While the link is down it returns a dead one, whose
// first use fails as a refused connection does: go-redis would write of an
// error from here to the standard error of the test.
func (l *link) dial(context.Context, string, string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return newDeadWire(), nil
	}
	conn, err := l.server.Dial()
	if err != nil {
		return nil, err
	}
	w := &wire{Conn: conn, link: l}
	l.wires[w] = struct{}{}
	return w, nil
}

// cut cuts all wires and refuses new ones.
func (l *link) cut() {
	l.switching.Lock()
	defer l.switching.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
	for w := range l.wires {
		w.fail(&net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET})
	}
	clear(l.wires)
}

// mend lets new wires through. The cut ones that the client still keeps for
// later use are used up first, so that no command of the test meets them.
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

// close ends the client and cuts what it left.
func (l *link) close() {
	_ = l.client.Close()
	l.cut()
}
