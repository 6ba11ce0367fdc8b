package core

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/reqlock/reqlock/internal/bridge"
	"github.com/reqlock/reqlock/internal/engine"
	"github.com/reqlock/reqlock/internal/redis/redisstore"
)

// Defaults of the settings.
const (
	defaultTTL            = 10 * time.Second
	defaultRetryAfter     = time.Second
	defaultPrefix         = "reqlock:"
	defaultCommandTimeout = 500 * time.Millisecond
	defaultFailFast       = 3 * time.Second
	defaultMaxWaiters     = 1024
	defaultMaxTotal       = 64 * 1024
	defaultOpenCommits    = 1024
	defaultOpenBytes      = 64 << 20
	defaultRetention      = 24 * time.Hour
	defaultMaxAnswer      = 1 << 20
	defaultSealTimeout    = time.Second

	// minTTL is the shortest TTL that renewals can meet over a network.
	minTTL = 100 * time.Millisecond
	// maxTTL is far enough below the largest duration: small multiples of it do not
	// overflow.
	maxTTL = 10 * 365 * 24 * time.Hour
	// minCommandTimeout is the shortest time in which a nearby server can reply.
	minCommandTimeout = time.Millisecond
	// maxSealTimeout is how long an answer may wait for its key at most.
	maxSealTimeout = time.Minute
	// maxRetryAfter is the longest hint that is useful to a client.
	maxRetryAfter = 24 * time.Hour
)

// settings are the values of all options. Use defaultSettings, not the zero value.
type settings struct {
	ttl        time.Duration
	wait       time.Duration // waitUnset: not set
	renewal    bool
	maxHold    time.Duration // 0: no limit
	fencing    bool
	failOpen   bool
	retryAfter time.Duration
	caller     bool
	madeBy     string // the code that made the view, if caller is true
	name       string // "": that of the key
	maxWaiters int
	minHold    time.Duration // 0: none
	limit      engine.Limit  // that of a key without a limit of its own

	retention     time.Duration
	rerunUnknown  bool
	maxAnswer     int
	withoutAnswer bool
	reference     func(context.Context) string // nil: none
	sealer        Sealer                       // nil: answers are stored as they are
	sealTimeout   time.Duration
	// clientCancel lets the end of the caller's context end that of an attempt.
	clientCancel bool

	requests bridge.Settings // which only the adapters use

	root // shared by all views of one Locker
}

// root are the settings that only New and NewQuorum accept.
type root struct {
	prefix         string
	commandTimeout time.Duration
	failFast       time.Duration // 0: never
	maxTotal       int
	openCommits    int
	openBytes      int
	observers      []*observer           // that of log is the first one, after startLog
	logger         *slog.Logger          // nil: slog.Default
	silent         bool                  // WithLogger(nil)
	log            *eventLog             // nil if silent
	explain        func(err error) error // says what to do about a failure of Redis
	replicas       redisstore.Replicas
	quarantine     time.Duration // 0: not a quorum
	unknownSearch  time.Duration // the pause between two searches; 0: no search
	instance       *Instance     // nil: the process is not registered
	process        string        // the id of the process
}

// waitUnset is the wait of a Locker without WithWait.
const waitUnset = time.Duration(-1)

func defaultSettings() settings {
	return settings{
		ttl:        defaultTTL,
		wait:       waitUnset,
		renewal:    true,
		retryAfter: defaultRetryAfter,
		maxWaiters: defaultMaxWaiters,
		retention:  defaultRetention,
		maxAnswer:  defaultMaxAnswer,

		sealTimeout: defaultSealTimeout,
		root: root{
			prefix: defaultPrefix, commandTimeout: defaultCommandTimeout, failFast: defaultFailFast,
			maxTotal: defaultMaxTotal, openCommits: defaultOpenCommits, openBytes: defaultOpenBytes,
		},
	}
}

// settingsOf returns the default settings, changed by the options. Errors name the function.
// The caller checks the settings together: see check.
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
	return s, nil
}

// check refuses settings that contradict each other.
func (s *settings) check() error {
	if err := s.checkQuorum(); err != nil {
		return err
	}
	if err := s.checkUnknownSearch(); err != nil {
		return err
	}
	if err := s.checkLimit(); err != nil {
		return err
	}
	return s.checkReplicas()
}

// startLog makes the log of WithLogger the first observer. explain says what to do about a failure
// of Redis.
func (s *settings) startLog(explain func(error) error) {
	s.explain = explain
	if s.silent {
		return
	}
	s.log = &eventLog{logger: s.logger, process: s.process}
	s.noteFailOpen()
	s.observers = append([]*observer{{observe: s.log.observe}}, s.observers...)
}

// noteFailOpen notes WithFailOpen for the line about an outage.
func (s *settings) noteFailOpen() {
	if s.failOpen && s.log != nil {
		s.log.failsOpen.Store(true)
	}
}

// hasObserver reports whether there is an observer beside the log.
func (s *settings) hasObserver() bool {
	return len(s.observers) > 1 || len(s.observers) == 1 && s.log == nil
}

// engineConfig returns the engine's configuration.
func (s *settings) engineConfig() engine.Config {
	hooks := engine.Hooks{Cause: causeOf, IsSealed: isSealed}
	if len(s.observers) > 0 {
		hooks.Observe = s.observe
		hooks.OnlyUrgent = !s.hasObserver()
	}
	return engine.Config{
		Process:         s.process,
		Bound:           s.commandTimeout,
		FailFast:        s.failFast,
		MaxTotalWaiters: s.maxTotal,
		MaxOpenCommits:  s.openCommits,
		MaxOpenBytes:    int64(s.openBytes),
		Hooks:           hooks,
	}
}
