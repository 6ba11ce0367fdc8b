// Package demoredis connects the examples to a Redis: to one that runs already,
// or to one that they embed.
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

// answerTime is how long a Redis may take to say that it is there.
const answerTime = 3 * time.Second

// A Server is the Redis of one run.
type Server struct {
	// URL is how to reach it. It may hold a password.
	URL string
	// Name says what it is, to a person.
	Name string
	// Client is a client of it.
	Client *redis.Client

	embedded *miniredis.Miniredis // nil where it runs already
}

// Connect returns the Redis of a URL, or an embedded one if the URL is empty.
// The error does not repeat the URL, which may hold a password.
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

// answers returns nil if the client's Redis answers. It knocks before the
// client does, which would try many times and log each failure.
func answers(ctx context.Context, client *redis.Client) error {
	options := client.Options()
	knock, err := new(net.Dialer).DialContext(ctx, options.Network, options.Addr)
	if err != nil {
		return err
	}
	_ = knock.Close()
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

// withoutURL takes what may hold a password out of an error of parsing a URL.
func withoutURL(err error) error {
	var parsing *url.Error
	if errors.As(err, &parsing) {
		return errors.New("it cannot be parsed")
	}
	return err
}
