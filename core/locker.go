package core

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/engine"
	"github.com/reqlock/reqlock/internal/redis/readiness"
	"github.com/reqlock/reqlock/internal/redis/redisstore"
	"github.com/reqlock/reqlock/internal/redis/registry"
)

// A Locker takes locks in Redis. New or NewQuorum makes it. It is safe for concurrent use. A
// process needs only one. Views with other settings share its connections and its queues.
//
// A second Locker with the same Redis and prefix counts as another process. A caller that
// holds a key through the one, and locks it again through the other, waits for itself. Each Locker
// has goroutines and connections of its own, so a Locker for each request exhausts Redis.
type Locker struct {
	backend  backend
	engine   *engine.Engine
	settings settings
	checks   *checks   // shared by all views
	warned   *sync.Map // the subjects of warn, for all views
	// detaching lets one call of Detach at a time take its locks, for all views.
	detaching *sync.Mutex

	registration *registration    // shared by all views
	beater       *registry.Beater // nil without WithInstance
}

// New returns a Locker that takes its locks through rdb. It does no I/O and starts no
// goroutine, except for WithUnknownSearch. WithInstance starts one with the first lock. The caller keeps rdb and closes it after the Locker.
//
// Set ContextTimeoutEnabled in the options of the client. Then the goroutine of a lone caller
// sends its commands itself. This saves two switches between goroutines for each command,
// which is a tenth to a third of the time of a lock on a nearby server. Hooks of the client
// then run on the caller's goroutine, and must not block it. Without the option, a read
// cannot be ended in time, so another goroutine sends all commands. The option also applies
// to all other uses of the client.
//
// Tracing hooks, such as those of redisotel, write the arguments of each command into a span
// by default: the raw keys and the tokens of locks. A user who reads a token can release
// the lock. Turn these arguments off: redisotel.InstrumentTracing(rdb, redisotel.WithDBStatement(false)).
//
// A hook of the client sees arguments that are not strings but print as their values. It
// also sees commands that are reused after the call of the hook, so it must copy what it
// keeps. The context of the hook is not the context of one caller.
//
// The client may be a client of one server, of Sentinel (redis.NewFailoverClient) or of a
// cluster. New refuses a redis.Ring and a client of a cluster that reads from replicas. New
// cannot recognize a *redis.Client that is connected to a replica (ReplicaOnly): with it,
// each lock fails with ErrUnavailable, and Check says why.
//
// A wrapper should embed the client. With a wrapper that hides its client, each waiter of a
// dead process delays the queue by up to two seconds. In a cluster, such a process also does
// not take fair turns with processes that do not hide their client.
//
// If another Locker of the process has the same client and prefix, and is not closed, the new one
// sends a Warned event: once for each client and prefix. New does not recognize a client that is no
// pointer, or that another client wraps.
//
// If a setting is invalid, the error names the option.
func New(rdb redis.UniversalClient, opts ...Option) (*Locker, error) {
	if isNil(rdb) {
		return nil, errors.New("reqlock: New: the redis client is nil")
	}
	if err := redisstore.CheckClient(rdb); err != nil {
		return nil, fmt.Errorf("reqlock: New: %w", err)
	}
	s, err := settingsOf("New", opts)
	if err != nil {
		return nil, err
	}
	if s.quarantine != 0 {
		return nil, errors.New("reqlock: New: WithQuarantine is an option of NewQuorum only: leave it out")
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	if err := redisstore.CheckReplicas(rdb, s.replicas); err != nil {
		return nil, fmt.Errorf("reqlock: WithReplicas: %w", err)
	}
	s.process = redisstore.NewProcess()
	s.startLog(func(err error) error { return readiness.Explain(rdb, s.prefix, s.replicas, err) })
	store, err := redisstore.New(rdb, s.prefix, s.process, s.replicas)
	if err != nil {
		return nil, fmt.Errorf("reqlock: WithPrefix: the prefix %w", err)
	}
	store.NameSubscription(s.subscriptionName())
	l := newLocker(deployment{rdb, new(readiness.Passed)}, engine.New(store, s.engineConfig()), s, rdb)
	l.settings.startUnknownSearch(l.engine, store)
	return l, nil
}

// newLocker returns a Locker of these clients.
func newLocker(b backend, e *engine.Engine, s settings, clients ...redis.UniversalClient) *Locker {
	l := &Locker{
		backend: b, engine: e, settings: s, checks: new(checks), warned: new(sync.Map), detaching: new(sync.Mutex),
		registration: new(registration),
	}
	l.beater = l.newBeater(b.servers())
	l.register(clients)
	return l
}

// Must returns l, and panics if err is not nil. It wraps New where an invalid setting is a
// mistake of the programmer: locks := core.Must(core.New(rdb)).
func Must(l *Locker, err error) *Locker {
	if err != nil {
		panic(err)
	}
	return l
}

// With returns a view of the Locker with other settings. The view shares connections, queues
// and observers with the Locker. With panics if a setting is invalid, or if only New and
// NewQuorum accept it.
func (l *Locker) With(opts ...Option) *Locker {
	view, err := l.view(opts)
	if err != nil {
		panic(err)
	}
	if view.settings.name != l.settings.name {
		view.observeRegistered(nil, false)
	}
	return view
}

// view is With with an error instead of a panic.
func (l *Locker) view(opts []Option) (*Locker, error) {
	view := *l
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("reqlock: With: an option is nil")
		}
		if o, ok := opt.(rootOption); ok {
			return nil, errors.New("reqlock: " + o.name + " is a setting of the whole Locker, and none of a view: give it to " + o.by)
		}
		if err := opt.apply(&view.settings); err != nil {
			return nil, err
		}
	}
	view.settings.noteFailOpen()
	if err := view.settings.check(); err != nil {
		return nil, err
	}
	return &view, nil
}

// Close ends the Locker and all its views. New requests and waiters get ErrClosed. Holders
// may finish: Close waits for them and for all commands that are under way, and then returns
// nil. If there are holders, the observer receives a Closing event with their number.
//
// A lease that its holder never releases is renewed, and Close waits for it. So give Close a
// ctx with a deadline. Commits that go on in the background (see Attempt.Commit) have as
// much time, or 2 s after the last holder if ctx has no deadline. If ctx ends first, Close
// cancels the contexts of the remaining holders with ErrClosed, and leaves their keys to
// expire after their TTL. It waits up to 1 s for the ends of attempts among them. The error is then ctx's error, with the number of leases that were
// not released and the age of the oldest: see WithCaller. Close may be called more than
// once. A nil ctx is the background context.
func (l *Locker) Close(ctx context.Context) error {
	defer l.backend.close()
	defer l.beater.Stop()
	l.registration.isClosed.Store(true)
	l.checks.close()
	if err := l.engine.Close(orBackground(ctx)); err != nil {
		return fmt.Errorf("reqlock: close: %w", err)
	}
	return nil
}

// OpenCommits are the commits that go on in the background, because Redis did not accept them
// while their callers waited: see Attempt.Commit.
type OpenCommits struct {
	// Count is how many there are.
	Count int
	// Bytes is the size of their answers and keys together.
	Bytes int
	// Oldest is for how long the oldest one has gone on; 0 if there is none.
	Oldest time.Duration
}

// OpenCommits returns the open commits of the Locker and its views. It does no I/O.
func (l *Locker) OpenCommits() OpenCommits {
	count, bytes, oldest := l.engine.OpenCommits()
	return OpenCommits{Count: count, Bytes: int(bytes), Oldest: oldest}
}

// isNil reports whether the client is nil or a nil pointer.
func isNil(rdb redis.UniversalClient) bool {
	if rdb == nil {
		return true
	}
	v := reflect.ValueOf(rdb)
	return v.Kind() == reflect.Pointer && v.IsNil()
}
