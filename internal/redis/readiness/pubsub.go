package readiness

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/topology"
)

// hear subscribes and publishes as the Store and its scripts do, which do not say
// what the server has against it.
func (s *scene) hear(ctx context.Context) error {
	err := s.hearOn(ctx, s.channel())
	if err != nil && isUnknown(err.Error()) { // as the Store does, which then needs no sharded channels
		err = s.hearOn(ctx, s.plainChannel())
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.deaf = err
	return nil
}

// A sceneChannel is one on which a Store hears and its scripts tell.
type sceneChannel struct {
	name        string
	publish     string // the command
	subscribe   func(ctx context.Context, names ...string) *redis.PubSub
	unsubscribe func(conn *redis.PubSub, ctx context.Context, names ...string) error
}

// channel returns that of the key in a cluster, else that of the process.
func (s *scene) channel() sceneChannel {
	node, isNode := s.target.node.(*redis.Client)
	if _, isCluster := s.check.rdb.(topology.Cluster); !isCluster || !isNode {
		return s.plainChannel()
	}
	return sceneChannel{
		s.names.ShardChannel(s.name(), s.process), "spublish", node.SSubscribe, (*redis.PubSub).SUnsubscribe,
	}
}

func (s *scene) plainChannel() sceneChannel {
	return sceneChannel{name: s.names.ProcessChannel(s.process), publish: "publish", subscribe: s.check.rdb.Subscribe}
}

// hearOn subscribes to a channel for a moment, and publishes on it.
func (s *scene) hearOn(ctx context.Context, c sceneChannel) error {
	err := s.check.within(ctx, func(ctx context.Context) error {
		conn := c.subscribe(ctx, c.name)
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		defer func() {
			stop()
			_ = conn.Close()
		}()
		_, err := conn.Receive(ctx)
		if err == nil && c.unsubscribe != nil { // a plain channel ends with its connection
			err = heardOn(ctx, conn, c.unsubscribe(conn, ctx, c.name))
		}
		if err == nil {
			err = heardOn(ctx, conn, conn.Ping(ctx))
		}
		return err
	})
	switch {
	case errors.Is(err, command.ErrNoReply):
		return errNoSubscription
	case err != nil:
		return err
	}
	return s.send(ctx, command.New(1, []any{c.publish, c.name, ""}))
}

// heardOn reads the answer to what was said on a connection that listens.
func heardOn(ctx context.Context, conn *redis.PubSub, said error) error {
	if said != nil {
		return said
	}
	_, err := conn.Receive(ctx)
	return err
}

// ask says ASKING, as the client of a cluster does while a slot is moved.
func (s *scene) ask(ctx context.Context) error {
	if _, isCluster := s.check.rdb.(topology.Cluster); !isCluster {
		return nil
	}
	err := s.send(ctx, command.New(0, []any{"asking"}))
	if err != nil && !command.IsTransport(err) && refusedRight(err.Error()) == noRight {
		return nil // behind a client of a cluster there may be none
	}
	return err
}
