package core

import (
	"errors"
	"time"

	"github.com/reqlock/reqlock/internal/engine"
	"github.com/reqlock/reqlock/internal/redis/redisstore"
)

// Defaults of the settings.
const (
	defaultTTL            = 10 * time.Second
	defaultRetryAfter     = time.Second
	defaultPrefix         = "reqlock:"
	defaultCommandTimeout = 500 * time.Millisecond
	defaultMaxWaiters     = 1024
	defaultMaxTotal       = 64 * 1024
	defaultRetention      = 24 * time.Hour
	defaultMaxRecord      = 1 << 20

	// minTTL is the shortest lease that a network and a scheduler can keep.
	minTTL = 100 * time.Millisecond
	// maxTTL is so short that a small multiple of a TTL or a command timeout does not
	// overflow.
	maxTTL = 10 * 365 * 24 * time.Hour
	// minCommandTimeout is the shortest time in which a server nearby can answer.
	minCommandTimeout = time.Millisecond
	// maxRetryAfter is the longest time for which it makes sense to send a client away.
	maxRetryAfter = 24 * time.Hour
)

// settings are what options set. The zero value is not useful; see
// defaultSettings.
type settings struct {
	ttl        time.Duration
	wait       time.Duration // negative: not set
	renewal    bool
	maxHold    time.Duration // 0: none
	fencing    bool
	failOpen   bool
	retryAfter time.Duration

	retention   time.Duration
	interrupted Policy
	maxRecord   int

	root // shared by all views of one Locker
}

// root are the settings that only New and NewQuorum take.
type root struct {
	prefix         string
	commandTimeout time.Duration
	maxWaiters     int
	maxTotal       int
	observers      []func(Event)
	replicas       redisstore.Replicas
	quarantine     time.Duration // 0: not a quorum
}

// waitUnset is the wait of a Locker that was given none.
const waitUnset = time.Duration(-1)

func defaultSettings() settings {
	return settings{
		ttl:        defaultTTL,
		wait:       waitUnset,
		renewal:    true,
		retryAfter: defaultRetryAfter,
		retention:  defaultRetention,
		maxRecord:  defaultMaxRecord,
		root: root{
			prefix: defaultPrefix, commandTimeout: defaultCommandTimeout,
			maxWaiters: defaultMaxWaiters, maxTotal: defaultMaxTotal,
		},
	}
}

// settingsOf returns the settings that these options make, for the function named.
func settingsOf(function string, opts []Option) (settings, error) {
	s := defaultSettings()
	for _, opt := range opts {
		if opt == nil {
			return s, errors.New("reqlock: " + function + ": an option is nil")
		}
		if err := opt.apply(&s); err != nil {
			return s, err
		}
	}
	return s, s.check()
}

// check refuses settings that do not go together.
func (s *settings) check() error {
	if err := s.checkQuorum(); err != nil {
		return err
	}
	return s.checkReplicas()
}

// engineConfig returns what the settings mean for the engine of a process.
func (s *settings) engineConfig(process string) engine.Config {
	hooks := engine.Hooks{Cause: causeOf}
	if len(s.observers) > 0 {
		hooks.Observe = s.observe
	}
	return engine.Config{
		Process:         process,
		Bound:           s.commandTimeout,
		MaxWaiters:      s.maxWaiters,
		MaxTotalWaiters: s.maxTotal,
		Hooks:           hooks,
	}
}
