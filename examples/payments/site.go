package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"

	"github.com/reqlock/reqlock/core"
)

// A framework serves a bank, in one of the protocols.
type framework struct {
	name  string
	serve func(*bank, *core.Locker) server
	send  client
	words *strings.Replacer // translates expected statuses of HTTP
	rpc   bool              // calls methods, and has no payouts
}

// A server is an http.Server, a fiberServer or a grpcServer.
type server interface {
	Serve(net.Listener) error
	Shutdown(context.Context) error
}

// A grpcServer stops like an http.Server: it waits for the calls in flight until ctx ends.
type grpcServer struct{ *grpc.Server }

func (s grpcServer) Shutdown(ctx context.Context) error {
	defer context.AfterFunc(ctx, s.Stop)()
	s.GracefulStop()
	return ctx.Err()
}

// frameworks returns the frameworks in the order of the table.
func frameworks() []framework {
	onFiber := func(b *bank, l *core.Locker) server { return fiberServer{newFiberService(b, l)} }
	onGRPC := func(b *bank, l *core.Locker) server { return grpcServer{newGRPCService(b, l)} }
	toGRPC := strings.NewReplacer("Retry-After", "RetryInfo", "409", "ABORTED", "500", "INTERNAL")
	onConnect := onHTTP("Connect", newConnectService)
	onConnect.send, onConnect.words = sendConnect, strings.NewReplacer("409", "aborted", "500", "internal")
	onConnect.rpc = true
	return []framework{
		onHTTP("net/http", newNetHTTPService),
		onHTTP("Gin", newGinService),
		onHTTP("Echo v4", newEchoService),
		onHTTP("Echo v5", newEchov5Service),
		{"Fiber", onFiber, sendHTTP, strings.NewReplacer(), false},
		{"gRPC", onGRPC, sendGRPC, toGRPC, true},
		onConnect,
	}
}

func onHTTP(name string, routes func(*bank, *core.Locker) http.Handler) framework {
	serve := func(b *bank, l *core.Locker) server {
		return &http.Server{Handler: routes(b, l), ReadHeaderTimeout: 5 * time.Second}
	}
	return framework{name, serve, sendHTTP, strings.NewReplacer(), false}
}

// A site is a bank on one framework, and what happens there.
type site struct {
	framework
	bank     *bank
	redisURL string
	prefix   string      // of the keys in Redis
	sealer   core.Sealer // of the stored answers

	changed *sync.Cond // guards now
	now     counts
}

// newSite returns a site with its accounts, each with 100.00.
func newSite(on framework, redisURL, prefix string) *site {
	s := &site{framework: on, redisURL: redisURL, prefix: prefix, sealer: newSealer(), changed: sync.NewCond(new(sync.Mutex))}
	s.bank = &bank{clearing: s.clearing, booked: s.booked, accounts: make(map[string]*atomic.Int64), jobs: make(chan []byte)}
	names := []string{"alice", "bob", "carol", "dave"}
	for n := range nine {
		names = append(names, fmt.Sprint("payer-", n), fmt.Sprint("payee-", n))
	}
	for _, name := range names {
		s.bank.accounts[name] = new(atomic.Int64)
		s.bank.accounts[name].Store(100_00)
	}
	return s
}

// newSealer returns what encrypts the stored answers of a site. A service takes the key from its secret store.
func newSealer() *core.AESSealer {
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	sealer, err := core.NewAESSealer("demo", map[string][]byte{"demo": key})
	if err != nil {
		panic(err)
	}
	return sealer
}

// An instance is a process of a service, as far as its locks are concerned.
type instance struct {
	addr string
	stop func(ctx context.Context) error // as a deploy does

	mu    sync.Mutex // held while Redis is away
	conns []net.Conn // to Redis
}

// start starts an instance. All instances of a site share its bank and its keys.
func (s *site) start(ctx context.Context) (*instance, error) {
	i := &instance{}
	options, err := redis.ParseURL(s.redisURL)
	if err != nil {
		return nil, err
	}
	options.ContextTimeoutEnabled = true // see core.New
	options.Dialer = i.dial
	client := redis.NewClient(options)
	locks := core.Must(core.New(client, core.WithPrefix(s.prefix), core.WithObserver(s.observe),
		core.WithSealer(s.sealer),
		core.WithRetention(10*time.Minute),      // short, so that many runs do not fill your Redis
		core.WithCommandTimeout(2*time.Second))) // long, because everything runs on one busy machine
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	i.addr = listener.Addr().String()
	server := s.serve(s.bank, locks)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) }) // clients notice if it ends early
	working, ended := context.WithCancel(context.WithoutCancel(ctx))
	serving.Go(func() { s.bank.work(working, locks) })
	// First the server stops, so that no handler runs. Then Close completes what goes to Redis.
	i.stop = func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		defer serving.Wait()
		shut := server.Shutdown(ctx)
		ended()
		return errors.Join(shut, locks.Close(ctx), client.Close())
	}
	return i, nil
}

// dial connects to Redis. It waits while Redis is away, as for packets that a network loses.
func (i *instance) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err == nil {
		i.conns = append(i.conns, conn)
	}
	return conn, err
}

// cut takes Redis away from the instance until mend is called.
func (i *instance) cut() (mend func()) {
	i.mu.Lock()
	for _, conn := range i.conns {
		_ = conn.Close()
	}
	i.conns = nil
	return sync.OnceFunc(i.mu.Unlock)
}
