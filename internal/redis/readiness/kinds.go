package readiness

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
	"github.com/reqlock/reqlock/internal/redis/topology"
)

// AdviseOnClient returns a *Finding if a client works without ContextTimeoutEnabled, or nil. It
// does no I/O.
func AdviseOnClient(rdb redis.UniversalClient) error {
	if !topology.LacksContextTimeout(rdb) {
		return nil
	}
	return &Finding{text: "ContextTimeoutEnabled is off in the options of the redis client, so that a caller cannot send its own commands, " +
		"and each lock takes longer: set ContextTimeoutEnabled to true"}
}

// adviseOnKinds returns a *Finding if processes with the other kind of client can have the same
// locks, and this client is not the best one, or cannot notify their waiters. Otherwise it
// returns nil. A client of one server can have all locks of a cluster if they are at one master.
func (p *probe) adviseOnKinds(ctx context.Context, info map[string]string) error {
	var text string
	switch p.check.rdb.(type) {
	case topology.Cluster:
		if p.target.hasAll && p.isForbidden(ctx, "publish", p.names.ProcessChannel(p.process)) {
			text = "all locks are at one master, so that processes with a client of one server can have them, too, " +
				"and this process cannot notify their waiters: make all clients with redis.NewClusterClient, " +
				"or grant the user +publish and &" + keyspace.Escape(p.check.prefix) + "*"
		}
	case topology.Server:
		if info["cluster_enabled"] != "1" { // or the user may not know it
			return nil
		}
		text = "redis is a node of a cluster, and this is no client of a cluster: make the client with redis.NewClusterClient"
		if p.isForbidden(ctx, "spublish", p.names.ShardChannel(p.name(), p.process)) {
			text += ", or grant the user +spublish and " + patterns('&', p.check.prefix) +
				", because this process cannot notify waiters with clients of a cluster"
		}
	}
	if text == "" {
		return nil
	}
	return &Finding{addr: p.target.addr, text: text}
}

// isForbidden reports whether the user lacks a right to publish on the channel.
func (p *probe) isForbidden(ctx context.Context, publish, channel string) bool {
	err := p.send(ctx, command.New(1, []any{publish, channel, ""}))
	return err != nil && !command.IsTransport(err) && refusedRight(err.Error()) != noRight
}
