package main

import (
	"context"
	"net"
	"sync"

	"github.com/redis/go-redis/v9"
)

// A link is the way from an instance to Redis. It can be cut, as by a network that loses packets.
type link struct {
	mu     sync.Mutex
	mended chan struct{} // nil, or closed when the link is mended
	conns  []net.Conn
}

// client returns a client whose connections take the link.
func (l *link) client(to *redis.Options) *redis.Client {
	options := *to
	options.Dialer = l.dial
	return redis.NewClient(&options)
}

// cut ends all connections. New ones wait until mend is called.
func (l *link) cut() (mend func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	mended := make(chan struct{})
	l.mended = mended
	for _, conn := range l.conns {
		_ = conn.Close()
	}
	l.conns = nil
	return sync.OnceFunc(func() { close(mended) })
}

func (l *link) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	l.mu.Lock()
	mended := l.mended
	l.mu.Unlock()
	if mended != nil {
		select {
		case <-mended:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.conns = append(l.conns, conn)
	}
	return conn, err
}
