package redistest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestDeployments(t *testing.T) {
	t.Parallel()
	for _, kind := range Kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			kind.SkipRepeats(t)
			d := kind.Start(t)
			t.Run("it is of its kind", func(t *testing.T) { isOfItsKind(t, d) })
			t.Run("keys are those of all masters", func(t *testing.T) { findsKeys(t, d) })
			t.Run("a proxy is in front of all servers", func(t *testing.T) { isBehindProxy(t, d) })
			t.Run("all servers die and come back", func(t *testing.T) { restarts(t, d) })
		})
	}
}

// tryOnce makes a client of any kind give up after its first try.
func tryOnce(o *redis.UniversalOptions) {
	o.MaxRetries, o.MaxRedirects, o.DialerRetries = -1, -1, 1
}

// setMany sets keys in slots of all masters, and returns their names in order.
func setMany(t *testing.T, client redis.UniversalClient) []string {
	t.Helper()
	var names []string
	for i := range 32 {
		names = append(names, fmt.Sprintf("key%02d", i))
		if err := client.Set(t.Context(), names[i], "value", 0).Err(); err != nil {
			t.Fatalf("SET: %v", err)
		}
	}
	return names
}

func isOfItsKind(t *testing.T, d *Deployment) {
	t.Helper()
	client := d.Client(t, func(o *redis.UniversalOptions) { o.ContextTimeoutEnabled = true })
	options, servers := &redis.Options{}, 1
	switch client := client.(type) {
	case *redis.ClusterClient:
		options.ContextTimeoutEnabled, servers = client.Options().ContextTimeoutEnabled, 6
		if d.Kind != OnCluster {
			t.Errorf("a client of a cluster on %v", d.Kind)
		}
	case *redis.Client:
		options = client.Options()
		if sentinel := options.Addr == "FailoverClient"; sentinel != (d.Kind == OnSentinels) || d.Kind == OnCluster {
			t.Errorf("a client of %s on %v", options.Addr, d.Kind)
		} else if sentinel {
			servers = 3
		}
	}
	if !options.ContextTimeoutEnabled {
		t.Error("the client has not the options that were asked for")
	}
	if got := len(d.Servers()); got != servers {
		t.Errorf("%d servers, want %d", got, servers)
	}
}

func findsKeys(t *testing.T, d *Deployment) {
	t.Helper()
	names := setMany(t, d.Client(t))
	// By a client that another process makes.
	found, err := Keys(t.Context(), d.Options().Client(t), "key*")
	slices.Sort(found)
	if err != nil || !slices.Equal(found, names) {
		t.Errorf("found %q, %v", found, err)
	}
}

// All commands of a client to servers with data go through the proxy, and no commands of
// other clients.
func isBehindProxy(t *testing.T, d *Deployment) {
	t.Helper()
	proxy := d.Proxy(t)
	client, direct := d.Client(t, Through(proxy), tryOnce), d.Client(t)
	names := setMany(t, client)
	setMany(t, direct)
	if n := proxy.Commands()["SET"]; n != len(names) {
		t.Errorf("%d of %d commands went through", n, len(names))
	}
	proxy.Refuse(true)
	for _, name := range names {
		if err := client.Get(t.Context(), name).Err(); err == nil {
			t.Errorf("an answer of a server that is down")
		}
		if err := direct.Get(t.Context(), name).Err(); err != nil {
			t.Errorf("past the proxy: %v", err)
		}
	}
	proxy.Refuse(false)
	setMany(t, client)
	if n := proxy.Commands()["SET"]; n != 2*len(names) {
		t.Errorf("afterwards %d of %d commands went through", n-len(names), len(names))
	}
}

func restarts(t *testing.T, d *Deployment) {
	t.Helper()
	client := d.Client(t)
	setMany(t, client)
	d.Kill()
	if err := d.Client(t, tryOnce).Ping(t.Context()).Err(); err == nil {
		t.Error("a server that is dead answers")
	}
	d.Restart()
	again := d.Client(t)
	if found, err := Keys(t.Context(), again, "*"); err != nil || len(found) != 0 {
		t.Errorf("found %q, %v", found, err)
	}
	setMany(t, again)
}

// A rule is used up by one command to any of the servers, and what is cut is cut
// on all.
func TestAProxyOfSeveralServersIsOneNetwork(t *testing.T) {
	t.Parallel()
	first, second := Start(t), Start(t)
	proxy := NewProxy(t, first.Addr(), second.Addr())
	dial := func(o *redis.Options) { o.Dialer = proxy.Dial }
	clients := []*redis.Client{first.Client(t, once, dial), second.Client(t, once, dial)}
	ping := func(want ...bool) {
		t.Helper()
		for i, client := range clients {
			if err := client.Ping(t.Context()).Err(); (err == nil) != want[i] {
				t.Errorf("the answer of server %d: %v", i+1, err)
			}
		}
	}
	ping(true, true)
	dropped := proxy.DropReply(Named("ping"), CloseConn)
	ping(false, true)
	suite.AwaitClosed(t, "the reply is lost", dropped)

	release, seen := proxy.HoldCommand(Named("echo"))
	var echoed [2]<-chan error
	for i, client := range clients {
		answer := make(chan error, 1)
		echoed[i] = answer
		go func() { answer <- client.Echo(context.WithoutCancel(t.Context()), "text").Err() }()
		if i == 0 {
			suite.AwaitClosed(t, "the command is held", seen)
		}
	}
	if err := suite.Receive(t, "the second server answers", echoed[1]); err != nil { // the rule is used up
		t.Errorf("the second server: %v", err)
	}
	release()
	if err := suite.Receive(t, "the first server answers", echoed[0]); err != nil {
		t.Errorf("a command that was let go: %v", err)
	}

	proxy.ResetCommands()
	proxy.Cut()
	for _, client := range clients { // a client may send a command before it notices the cut
		suite.Eventually(t, "a new connection", func() bool { return client.Ping(t.Context()).Err() == nil })
	}
	if n := proxy.Commands(); n["HELLO"] != 2 {
		t.Errorf("after a cut two clients sent %v", n)
	}
	proxy.Refuse(true)
	ping(false, false)
}
