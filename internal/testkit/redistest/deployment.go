package redistest

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// Deployment is the servers of one kind, for tests with the same result on each kind.
type Deployment struct {
	// Kind is the kind of the servers.
	Kind Kind

	servers   group
	sentinels *Sentinels
	cluster   *Cluster
	await     func()
}

// Servers returns the servers with data: masters and replicas. The slice belongs
// to the caller.
func (d *Deployment) Servers() []*Server { return slices.Clone(d.servers) }

// Proxy starts a proxy in front of all servers with data. Clients with
// [Through] use it.
func (d *Deployment) Proxy(tb testing.TB) *Proxy {
	tb.Helper()
	var addrs []string
	for _, server := range d.servers {
		addrs = append(addrs, server.Addr())
	}
	return NewProxy(tb, addrs[0], addrs[1:]...)
}

// Kill kills all servers with data.
func (d *Deployment) Kill() {
	for _, server := range d.servers {
		server.Kill()
	}
}

// Restart restarts these servers with empty memory, and returns when they are healthy.
func (d *Deployment) Restart() {
	for _, server := range d.servers {
		server.Restart()
	}
	d.await()
}

// Grant is [Server.Grant] on all servers with data.
func (d *Deployment) Grant(rights ...string) {
	for _, server := range d.servers {
		server.Grant(rights...)
	}
}

// Kind is a way to deploy Redis.
type Kind int

const (
	// OnServer is a single server.
	OnServer Kind = iota
	// OnSentinels is a master with replicas, which sentinels monitor.
	OnSentinels
	// OnCluster is a Redis Cluster.
	OnCluster
)

// Kinds returns all kinds, for tests that run on each.
func Kinds() []Kind { return []Kind{OnServer, OnSentinels, OnCluster} }

// kindNames are the names of the kinds.
var kindNames = [...]string{OnServer: "single", OnSentinels: "sentinel", OnCluster: "cluster"}

// String returns the name of the kind, which is also the name of its subtests.
func (k Kind) String() string { return kindNames[k] }

// SkipSentinels skips a test of the kind OnSentinels in the fast tier. Without a failover, that
// master does what a single server does.
func (k Kind) SkipSentinels(tb testing.TB) {
	tb.Helper()
	if k == OnSentinels {
		suite.Full(tb, "repeats the test on a master that Sentinel monitors")
	}
}

// SkipRepeats skips a test in the fast tier, except on a single server.
func (k Kind) SkipRepeats(tb testing.TB) {
	tb.Helper()
	if k != OnServer {
		suite.Full(tb, "repeats the test on another kind of Redis")
	}
}

// Start starts servers of the kind by [Start], [StartSentinel] or [StartCluster].
func (k Kind) Start(tb testing.TB, args ...string) *Deployment {
	tb.Helper()
	d := &Deployment{Kind: k}
	switch k {
	case OnSentinels:
		d.sentinels = StartSentinel(tb, args...)
		d.servers = d.sentinels.servers
		d.await = d.sentinels.Await
	case OnCluster:
		d.cluster = StartCluster(tb, args...)
		d.servers = d.cluster.nodes
		d.await = d.cluster.Await
	case OnServer:
		d.servers = group{Start(tb, args...)}
		d.await = func() {}
	}
	return d
}

// Client returns a client as users make it for this kind, that the cleanup of tb
// closes. Its options are the defaults of go-redis, retries included, with the
// password of the servers if --requirepass sets one, apart from what configure
// changes.
func (d *Deployment) Client(tb testing.TB, configure ...func(*redis.UniversalOptions)) redis.UniversalClient {
	tb.Helper()
	changed := func(o redis.UniversalOptions) *redis.UniversalOptions {
		for _, change := range configure {
			change(&o)
		}
		return &o
	}
	switch d.Kind {
	case OnSentinels:
		return d.sentinels.Client(tb, func(o *redis.FailoverOptions) {
			*o = *changed(redis.UniversalOptions{
				Addrs: o.SentinelAddrs, MasterName: o.MasterName, Username: o.Username, Password: o.Password,
			}).Failover()
		})
	case OnCluster:
		return d.cluster.Client(tb, func(o *redis.ClusterOptions) {
			*o = *changed(redis.UniversalOptions{Addrs: o.Addrs, Username: o.Username, Password: o.Password}).Cluster()
		})
	default:
		return d.servers[0].Client(tb, func(o *redis.Options) {
			*o = *changed(redis.UniversalOptions{Addrs: []string{o.Addr}, Username: o.Username, Password: o.Password}).Simple()
		})
	}
}

// Options returns the options with which another process creates a client by
// redis.NewUniversalClient. They can be sent as JSON.
func (d *Deployment) Options() Options {
	var o Options
	watched := d.servers
	if d.Kind == OnSentinels {
		o.MasterName, watched = MasterName, d.sentinels.watch
	}
	for _, server := range watched {
		o.Addrs = append(o.Addrs, server.Addr())
	}
	o.Password = d.servers[0].password()
	return o
}

// Options are the part of redis.UniversalOptions that locates the servers.
type Options struct {
	Addrs                []string
	MasterName, Password string
}

// Client returns a client with these options, that the cleanup of tb closes.
func (o Options) Client(tb testing.TB) redis.UniversalClient {
	tb.Helper()
	client := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: o.Addrs, MasterName: o.MasterName, Password: o.Password})
	closeWith(tb, client)
	return client
}

// Through makes a client connect to the servers through the proxy. Connections to sentinels
// do not use the proxy.
func Through(p *Proxy) func(*redis.UniversalOptions) {
	return func(o *redis.UniversalOptions) { o.Dialer = p.Dial }
}

// Keys returns the names of the keys on all masters that match the pattern. The
// client is one of any kind.
func Keys(ctx context.Context, rdb redis.UniversalClient, pattern string) ([]string, error) {
	var all []string
	err := EachMaster(ctx, rdb, func(master redis.Cmdable) error {
		names, err := master.Keys(ctx, pattern).Result()
		all = append(all, names...)
		return err
	})
	return all, err
}

// EachMaster calls do for each master of a cluster, or for the master of any other client,
// one after the other. It returns one of the errors.
func EachMaster(ctx context.Context, rdb redis.UniversalClient, do func(master redis.Cmdable) error) error {
	cluster, is := rdb.(*redis.ClusterClient)
	if !is {
		return do(rdb)
	}
	var one sync.Mutex
	return cluster.ForEachMaster(ctx, func(_ context.Context, master *redis.Client) error {
		one.Lock()
		defer one.Unlock()
		options := *master.Options()
		user := anybodysAdministrator()
		if user == "" || options.Username != "" || options.Password != "" {
			return do(master)
		}
		// The client of the node has no route to the administrator.
		options.Username, options.Password = user, noPassword
		admin := redis.NewClient(&options)
		defer func() { _ = admin.Close() }()
		return do(admin)
	})
}
