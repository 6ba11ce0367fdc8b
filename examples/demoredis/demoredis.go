// Package demoredis connects the examples to a running Redis, or to an embedded one.
package demoredis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// answerTime is how long Connect waits for an answer of Redis.
const answerTime = 3 * time.Second

// A Server is the Redis of a program.
type Server struct {
	// URL is the URL of the Redis. It may contain a password.
	URL string
	// Name describes the Redis for a person.
	Name string
	// Client is a client of the Redis.
	Client *redis.Client

	embedded *miniredis.Miniredis // nil for a running Redis
}

// Connect returns the Redis of a URL, or an embedded one if the URL is empty. The
// error does not contain the URL, which may contain a password.
func Connect(ctx context.Context, rawURL string) (*Server, error) {
	if rawURL == "" {
		return embed()
	}
	options, err := redis.ParseURL(rawURL)
	if err != nil {
		return nil, fmt.Errorf("REDIS_URL is not the URL of a Redis: %w", withoutURL(err))
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	options.ContextTimeoutEnabled = true // see core.New
	client := redis.NewClient(options)
	if err := answers(ctx, client); err != nil {
		_ = client.Close()
		return nil, fmt.Errorf("the Redis of REDIS_URL, %s, cannot be used: %w", options.Addr, err)
	}
	return &Server{
		URL:    rawURL,
		Name:   fmt.Sprintf("%s, database %d (REDIS_URL)", options.Addr, options.DB),
		Client: client,
	}, nil
}

// answers returns nil if the client's Redis answers. It opens a connection first,
// since the client would retry many times and log each failure.
func answers(ctx context.Context, client *redis.Client) error {
	options := client.Options()
	conn, err := new(net.Dialer).DialContext(ctx, options.Network, options.Addr)
	if err != nil {
		return err
	}
	_ = conn.Close()
	return client.Ping(ctx).Err()
}

// embed starts a Redis in this process. Other processes can reach it too.
func embed() (*Server, error) {
	embedded := miniredis.NewMiniRedis()
	embedded.ClockTTL(true) // without it keys would never expire
	if err := embedded.Start(); err != nil {
		return nil, fmt.Errorf("cannot start an embedded Redis: %w", err)
	}
	return &Server{
		URL:      "redis://" + embedded.Addr(),
		Name:     "embedded (miniredis), for this run alone; set REDIS_URL to use yours",
		Client:   redis.NewClient(&redis.Options{Addr: embedded.Addr(), ContextTimeoutEnabled: true}),
		embedded: embedded,
	}, nil
}

// Close closes the client, and ends an embedded Redis.
func (s *Server) Close() error {
	err := s.Client.Close()
	if s.embedded != nil {
		s.embedded.Close()
	}
	return err
}

// withoutURL removes the URL from a parse error, since the URL may contain a
// password.
func withoutURL(err error) error {
	var parsing *url.Error
	if errors.As(err, &parsing) {
		return errors.New("it cannot be parsed")
	}
	return err
}
