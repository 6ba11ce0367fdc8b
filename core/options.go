package core

import (
	"errors"
	"fmt"
	"time"

	"github.com/reqlock/reqlock/internal/engine"
	"github.com/reqlock/reqlock/internal/redisstore"
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

	// replicaShare is how many times longer than replicas a command may take.
	replicaShare = 2
)

// An Option is a setting of a Locker, for New, With and the adapters'
// middlewares. Later ones win over earlier ones.
type Option interface {
	// ReqlockOption marks the options of reqlock and of its adapters, which
	// take both kinds in one list.
	ReqlockOption()
	apply(*settings) error
}

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

// root are the settings that only New takes.
type root struct {
	prefix         string
	commandTimeout time.Duration
	maxWaiters     int
	maxTotal       int
	observers      []func(Event)
	replicas       redisstore.Replicas
	quarantine     time.Duration // 0: not a quorum
}

// check finds out whether the settings go together.
func (s *settings) checkReplicas() error {
	wait := s.replicas.Timeout
	switch {
	case s.replicas.Count == 0:
		return nil
	case wait > s.commandTimeout/replicaShare:
		return fmt.Errorf("reqlock: WithReplicas: a timeout of %v is more than half of WithCommandTimeout, which is %v", wait, s.commandTimeout)
	case wait > s.ttl/4/replicaShare:
		return fmt.Errorf("reqlock: WithReplicas: a timeout of %v takes a TTL of at least %v, and WithTTL is %v: "+
			"a command has a quarter of that, and the replicas half of the command", wait, 4*replicaShare*wait, s.ttl)
	default:
		return nil
	}
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

// option is a setting that a view may change too.
type option func(*settings) error

// ReqlockOption marks an option.
func (option) ReqlockOption() {}

func (o option) apply(s *settings) error { return o(s) }

// rootOption is a setting of the root Locker alone.
type rootOption struct {
	name string
	set  func(*root) error
}

// ReqlockOption marks an option.
func (rootOption) ReqlockOption() {}

func (o rootOption) apply(s *settings) error { return o.set(&s.root) }

// WithTTL sets how long a lease lives without a renewal: 10 s if not set, at
// least 100 ms. It bounds how long a key stays locked after its holder
// crashed. Renewal extends the lease for as long as the holder runs.
func WithTTL(ttl time.Duration) Option {
	return option(func(s *settings) error {
		if ttl < minTTL {
			return fmt.Errorf("reqlock: WithTTL: %v is below %v", ttl, minTTL)
		}
		s.ttl = ttl
		return nil
	})
}

// WithWait sets how long to wait for a lock that another holds; 0 is not at
// all. Without it Lock, Do and DoAll wait until their context ends, while
// Enter and the middlewares do not wait. A wait that is over before Redis has
// answered at all ends with ErrUnavailable: nobody can say that the key is held.
func WithWait(wait time.Duration) Option {
	return option(func(s *settings) error {
		if wait < 0 {
			return fmt.Errorf("reqlock: WithWait: %v is negative", wait)
		}
		s.wait = wait
		return nil
	})
}

// WithRenewal sets whether a lease is renewed, at a third of its TTL, for as
// long as it is held. It is on if not set. Without renewal the lease's context
// ends with ErrLost shortly before the TTL is over.
func WithRenewal(on bool) Option {
	return option(func(s *settings) error {
		s.renewal = on
		return nil
	})
}

// WithMaxHold sets how long a lease may be held: then its context ends with
// ErrMaxHold, and it is renewed no more. 0, the default, sets no limit.
func WithMaxHold(limit time.Duration) Option {
	return option(func(s *settings) error {
		if limit < 0 {
			return fmt.Errorf("reqlock: WithMaxHold: %v is negative", limit)
		}
		s.maxHold = limit
		return nil
	})
}

// WithFencing sets whether each lease gets a fencing number, which Lease.Fence
// returns. It is off if not set. A resource that refuses a number lower than
// the highest it has seen is safe from a holder that acts after its lease
// ended: see Martin Kleppmann, "How to do distributed locking" (2016).
//
// The numbers of a key rise from lease to lease, in all processes, also where
// their counter in Redis is lost: they begin at the server's time in
// microseconds. They would fall only if the counter were lost and the clock of
// the server were behind its former time. All who lock the key need it on.
func WithFencing(on bool) Option {
	return option(func(s *settings) error {
		s.fencing = on
		return nil
	})
}

// WithFailOpen sets whether Do, DoAll, Enter and the middlewares run without
// the lock when Redis is unavailable. It is off if not set, and Lock and
// TryLock never do it. The observer hears of each run as Unlocked.
func WithFailOpen(on bool) Option {
	return option(func(s *settings) error {
		s.failOpen = on
		return nil
	})
}

// WithRetryAfter sets when a refused caller is told to try again: after 1 s if
// not set. HTTP rounds it up to whole seconds.
func WithRetryAfter(d time.Duration) Option {
	return option(func(s *settings) error {
		if d <= 0 {
			return fmt.Errorf("reqlock: WithRetryAfter: %v is not positive", d)
		}
		s.retryAfter = d
		return nil
	})
}

// WithPrefix sets what stands before each key in Redis: "reqlock:" if not set.
// It may be empty, and may hold a whole hash tag such as "{app}:", which puts
// all locks in one cluster slot. Clients of other kinds that are to be
// excluded must use the same names. Only New takes it.
func WithPrefix(prefix string) Option {
	return rootOption{"WithPrefix", func(r *root) error {
		r.prefix = prefix
		return nil
	}}
}

// WithCommandTimeout bounds each command to Redis, its one re-send included:
// 500 ms if not set. It is never more than a quarter of the TTL. Only New
// takes it.
func WithCommandTimeout(d time.Duration) Option {
	return rootOption{"WithCommandTimeout", func(r *root) error {
		if d <= 0 {
			return fmt.Errorf("reqlock: WithCommandTimeout: %v is not positive", d)
		}
		r.commandTimeout = d
		return nil
	}}
}

// WithMaxWaiters bounds how many callers of this process wait for one key: 1024
// if not set, at least 1. Who comes after them gets ErrQueueFull at once. Only
// New takes it.
func WithMaxWaiters(n int) Option {
	return rootOption{"WithMaxWaiters", func(r *root) error {
		if n < 1 {
			return fmt.Errorf("reqlock: WithMaxWaiters: %d is below 1", n)
		}
		r.maxWaiters = n
		return nil
	}}
}

// WithMaxTotalWaiters bounds how many callers of this process wait for all
// keys together: 65536 if not set, at least 1. Who comes after them gets
// ErrOverloaded at once. Only New takes it.
func WithMaxTotalWaiters(n int) Option {
	return rootOption{"WithMaxTotalWaiters", func(r *root) error {
		if n < 1 {
			return fmt.Errorf("reqlock: WithMaxTotalWaiters: %d is below 1", n)
		}
		r.maxTotal = n
		return nil
	}}
}

// WithReplicas makes a lock count only once n replicas of its master have it: a
// grant, a renewal, the turn of a waiter, and the end of an idempotent request,
// Commit and Seal. They have the timeout for it, whole milliseconds; where fewer of
// them have said so by then, the request gets ErrUnavailable, and no lock is left
// behind. It is off if not set. n is at least 1, and the timeout at least 1 ms, at
// most half of WithCommandTimeout, and at most an eighth of the TTL. Only New takes
// it.
//
// A lock that n replicas have survives the loss of its master, if one of these is
// the next one. Redis promotes the replica that has the most, as far as that is
// known when it chooses; n as high as the number of replicas leaves no other. This
// is no consensus: what must not happen twice needs a fencing number, or the key, in
// the system where it happens.
//
// Each of these steps takes a round trip between master and replicas longer; those
// that come together share one, by WAIT on their connection. The time counts
// against the lease. Releases, and what is given up, do not wait for replicas: a
// release that is lost costs the rest of the TTL. While replicas are away, waiters
// wait on, a held lock is lost at the end of its validity, and a Commit is tried for
// two seconds. A Commit that fails for this is in Redis all the same, and is
// replayed unless that loses it.
//
// It takes the right +wait; connections of the client, up to four for each master
// under load; and a client that shows what it is: New refuses a wrapper that embeds
// none of go-redis, and a ReadTimeout too short for the timeout. On a cluster these
// commands go to the masters past the client's own hooks, though not past those that
// its NewClient or OnNewNode adds. Check says whether the replicas are there.
func WithReplicas(n int, timeout time.Duration) Option {
	return rootOption{"WithReplicas", func(r *root) error {
		switch {
		case n < 1:
			return fmt.Errorf("reqlock: WithReplicas: %d is below 1", n)
		case timeout < time.Millisecond:
			return fmt.Errorf("reqlock: WithReplicas: a timeout of %v is below 1ms", timeout)
		}
		r.replicas = redisstore.Replicas{Count: n, Timeout: timeout}
		return nil
	}}
}

// WithObserver adds a function that is told each event. Some are told by the
// goroutine that asks for a lock, and several at a time, so it must be quick,
// must not block, and must be safe for concurrent use. Only New takes it.
func WithObserver(observe func(Event)) Option {
	return rootOption{"WithObserver", func(r *root) error {
		if observe == nil {
			return errors.New("reqlock: WithObserver: the function is nil")
		}
		r.observers = append(r.observers[:len(r.observers):len(r.observers)], observe)
		return nil
	}}
}
