package redistest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
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
	kind, servers := OnServer, 1
	switch client := d.Client(t).(type) {
	case *redis.ClusterClient:
		kind, servers = OnCluster, 6
	case *redis.Client:
		if client.Options().Addr == "FailoverClient" {
			kind, servers = OnSentinels, 3
		}
	}
	if got := len(d.Servers()); kind != d.Kind || got != servers {
		t.Errorf("a client of %v on %v, and %d servers, want %d", kind, d.Kind, got, servers)
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
