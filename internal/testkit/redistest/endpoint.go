package redistest

import (
	"context"
	"errors"
	"maps"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// endpoint is where a proxy listens for the clients of one server.
type endpoint struct {
	proxy  *Proxy
	target string // host:port of the server
	addr   string // host:port for clients

	// The rest is under the proxy's lock.
	listener    net.Listener             // nil while it is down
	closed      chan struct{}            // closed when the listener accepts no more connections
	markers     map[string]chan struct{} // see drainBacklog
	impairments [2]impairment            // by direction
}

// newEndpoint listens on a free loopback port, which is reserved if the endpoint may be down
// meanwhile.
func newEndpoint(p *Proxy, target string) *endpoint {
	p.tb.Helper()
	f := &endpoint{proxy: p, target: target, markers: make(map[string]chan struct{})}
	f.listen(func() string {
		if !p.impairs {
			return loopback(0)
		}
		port, err := FreePort(p.tb)
		if err != nil {
			p.tb.Fatalf("start proxy: %v", err)
		}
		return loopback(port)
	})
	return f
}

// listen accepts connections on the first free one of these addresses.
func (f *endpoint) listen(next func() string) {
	f.proxy.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	var config net.ListenConfig
	for {
		listener, err := config.Listen(ctx, "tcp", next())
		if err == nil {
			closed := make(chan struct{})
			f.proxy.mu.Lock()
			defer f.proxy.mu.Unlock()
			f.listener, f.closed, f.addr = listener, closed, listener.Addr().String()
			f.proxy.running.Go(func() { f.accept(listener, closed) })
			return
		}
		select {
		case <-ctx.Done():
			f.proxy.tb.Fatalf("start proxy: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
}

// down closes all connections, and refuses new ones.
func (f *endpoint) down() {
	f.proxy.mu.Lock()
	if f.listener != nil {
		_ = f.listener.Close()
		f.listener = nil
	}
	f.proxy.mu.Unlock()
	f.cut()
}

// up ends down.
func (f *endpoint) up() {
	f.proxy.tb.Helper()
	f.proxy.mu.Lock()
	isDown := f.listener == nil
	f.proxy.mu.Unlock()
	if isDown {
		f.listen(func() string { return f.addr })
	}
}

// cut closes the connections that are links now.
func (f *endpoint) cut() {
	f.proxy.mu.Lock()
	links := slices.Collect(maps.Keys(f.proxy.links))
	f.proxy.mu.Unlock()
	for _, l := range links {
		if l.endpoint == f {
			l.close()
		}
	}
}

// impaired returns how the bytes of a direction pass.
func (f *endpoint) impaired(d Direction) impairment {
	f.proxy.mu.Lock()
	defer f.proxy.mu.Unlock()
	return f.impairments[d]
}

func (f *endpoint) accept(listener net.Listener, closed chan struct{}) {
	defer close(closed)
	for {
		client, err := listener.Accept()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				f.proxy.tb.Errorf("proxy: %v", err)
			}
			return
		}
		if !f.admit(listener, client) {
			_ = client.Close()
		}
	}
}

// admit starts a link for the connection. It returns false if the proxy refuses it.
func (f *endpoint) admit(listener net.Listener, client net.Conn) bool {
	// Under the lock: a link that Refuse or down does not cut is not admitted.
	p := f.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	addr := client.RemoteAddr().String()
	if marker, ok := f.markers[addr]; ok {
		delete(f.markers, addr)
		close(marker)
		return false
	}
	if p.refusing || f.listener != listener {
		return false
	}
	if conn, ok := client.(*net.TCPConn); ok && p.impairs {
		client = f.impair(conn)
	}
	// The link and its context end with the connection or with the proxy.
	ctx, cancel := context.WithCancel(context.Background())
	l := &link{proxy: p, endpoint: f, cancel: cancel, client: client}
	p.links[l] = struct{}{}
	p.running.Go(func() {
		l.run(ctx)
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.links, l)
	})
	return true
}

// drainBacklog returns when each connection that was dialed before is a link. For the
// client a connection exists as soon as the system has it in the backlog of the listener.
// drainBacklog adds a connection of its own, the marker, to the end of the backlog, and
// waits until that is accepted.
func (f *endpoint) drainBacklog() {
	conn, accepted, closed := f.dialMarker()
	if conn == nil {
		return // the endpoint is down, without a backlog
	}
	defer func() { _ = conn.Close() }()
	select {
	case <-accepted:
	case <-closed:
	}
}

// dialMarker dials the marker, and returns a channel that is closed when the marker was
// accepted, and that of its listener. It returns nil if there is no listener.
func (f *endpoint) dialMarker() (net.Conn, <-chan struct{}, <-chan struct{}) {
	// Under the lock, so that admit does not meet the marker before it is registered.
	// Dialing does not wait for accept.
	f.proxy.mu.Lock()
	defer f.proxy.mu.Unlock()
	dialer := net.Dialer{Timeout: readyTimeout}
	conn, err := dialer.DialContext(context.Background(), "tcp", f.addr)
	if err != nil {
		return nil, nil, nil
	}
	accepted := make(chan struct{})
	f.markers[conn.LocalAddr().String()] = accepted
	return conn, accepted, f.closed
}

// A router sends the commands of the code under test by a client with only Rights, and the
// commands of the test itself by a client of the administrator. The commands of reqlock tell
// go-redis not to retry them: this tells the two apart.
type router struct {
	tb    testing.TB
	admin redis.UniversalClient
}

// route makes the client, which does not authenticate, send the commands of the test itself
// by the client of the administrator.
func route(tb testing.TB, client, admin redis.UniversalClient) {
	client.AddHook(router{tb, admin})
}

// DialHook changes nothing.
func (router) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook routes a command.
func (r router) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if isUnprivileged(cmd) {
			return next(ctx, cmd)
		}
		r.mustBeOfTest(cmd)
		return r.admin.Process(ctx, cmd)
	}
}

// ProcessPipelineHook routes a pipeline, as the first of its commands.
func (r router) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if len(cmds) == 0 || isUnprivileged(cmds[0]) {
			return next(ctx, cmds)
		}
		r.mustBeOfTest(cmds[0])
		pipeline := r.admin.Pipeline()
		if cmds[0].Name() == "multi" {
			pipeline, cmds = r.admin.TxPipeline(), cmds[1:len(cmds)-1]
		}
		_ = pipeline.BatchProcess(ctx, cmds...) // Exec sends them
		_, err := pipeline.Exec(ctx)
		return err
	}
}

// isUnprivileged reports whether a command is of the code under test, or of go-redis at the
// beginning of a connection.
func isUnprivileged(cmd redis.Cmder) bool {
	switch args := cmd.Args(); cmd.Name() {
	case "hello", "auth", "select":
		return true
	case "client":
		return len(args) > 1 && (args[1] == "setinfo" || args[1] == "maint_notifications" || args[1] == "setname")
	default:
		return cmd.NoRetry()
	}
}

// product is the folder of the code under test that sends commands, below the root of the
// module. The frames of stacks are searched for it.
const product = "/internal/redis/"

// mustBeOfTest fails the test if the code under test is about to send a command as
// the administrator.
func (r router) mustBeOfTest(cmd redis.Cmder) {
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	for {
		frame, more := frames.Next()
		switch {
		case !more || strings.HasSuffix(frame.File, "_test.go"):
			return
		case strings.Contains(frame.File, product):
			r.tb.Errorf("the code under test sends %s as a test does: go-redis may retry it", cmd.Name())
			return
		}
	}
}
