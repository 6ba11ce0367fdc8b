package readiness

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/topology"
)

// checkPubSub subscribes and publishes as the Store and its scripts do. It sets pubsubErr,
// because the Store and the scripts do not report why the server refuses that.
func (p *probe) checkPubSub(ctx context.Context) error {
	err := p.tryChannel(ctx, p.channel())
	if err != nil && isUnknown(err.Error()) { // without sharded channels, the Store uses plain channels
		err = p.tryChannel(ctx, p.plainChannel())
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	p.pubsubErr = err
	return nil
}

// A hintChannel is a channel on which the scripts publish hints to a Store.
type hintChannel struct {
	name        string
	publish     string // the command
	subscribe   func(ctx context.Context, names ...string) *redis.PubSub
	unsubscribe func(conn *redis.PubSub, ctx context.Context, names ...string) error
}

// channel returns the channel of the key in a cluster, and otherwise the channel of the process.
func (p *probe) channel() hintChannel {
	node, isNode := p.target.node.(*redis.Client)
	if _, isCluster := p.check.rdb.(topology.Cluster); !isCluster || !isNode {
		return p.plainChannel()
	}
	return hintChannel{
		p.names.ShardChannel(p.name(), p.process), "spublish", node.SSubscribe, (*redis.PubSub).SUnsubscribe,
	}
}

// plainChannel returns the channel of the process.
func (p *probe) plainChannel() hintChannel {
	return hintChannel{name: p.names.ProcessChannel(p.process), publish: "publish", subscribe: p.check.rdb.Subscribe}
}

// tryChannel subscribes to a channel, unsubscribes, and publishes on the channel.
func (p *probe) tryChannel(ctx context.Context, c hintChannel) error {
	err := p.check.within(ctx, func(ctx context.Context) error {
		conn := c.subscribe(ctx, c.name)
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		defer func() {
			stop()
			_ = conn.Close()
		}()
		_, err := command.Receive(ctx, conn)
		if err == nil && c.unsubscribe != nil { // a subscription to a plain channel ends with its connection
			err = receiveReply(ctx, conn, c.unsubscribe(conn, ctx, c.name))
		}
		if err == nil {
			err = receiveReply(ctx, conn, conn.Ping(ctx))
		}
		return err
	})
	switch {
	case errors.Is(err, command.ErrNoReply):
		return errNoSubscription
	case err != nil:
		return err
	}
	return p.send(ctx, command.New(1, []any{c.publish, c.name, ""}))
}

// awaitSubscription waits until the Store receives messages, if pub/sub works. Without a
// subscription a release mostly finds no waiter to hand the key to, and then does not use LRANGE.
func (p *probe) awaitSubscription(ctx context.Context, ready <-chan struct{}) error {
	if p.pubsubErr != nil {
		return nil
	}
	return p.await(ctx, ready, errNoSubscription)
}

// receiveReply receives the reply to a command on a connection with a subscription, unless the
// command was not sent.
func receiveReply(ctx context.Context, conn *redis.PubSub, sendErr error) error {
	if sendErr != nil {
		return sendErr
	}
	_, err := command.Receive(ctx, conn)
	return err
}

// asking sends ASKING, as the client of a cluster does while a slot is migrated.
func (p *probe) asking(ctx context.Context) error {
	if _, isCluster := p.check.rdb.(topology.Cluster); !isCluster {
		return nil
	}
	err := p.send(ctx, command.New(0, []any{"asking"}))
	if err != nil && !command.IsTransport(err) && refusedRight(err.Error()) == noRight {
		return nil // a client of a cluster may lead to a server that is no node of a cluster
	}
	return err
}
