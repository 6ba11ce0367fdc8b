package core

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/engine"
	"github.com/reqlock/reqlock/internal/redis/quorumstore"
	"github.com/reqlock/reqlock/internal/redis/redisstore"
)

// A Locker takes locks in Redis. It is made by New or NewQuorum, and safe for
// concurrent use. A process needs one; views with other settings share its
// connections and its waiting lines.
type Locker struct {
	rdb      redis.UniversalClient
	quorum   *quorumstore.Store // instead of rdb, where NewQuorum made it
	engine   *engine.Engine
	settings settings
}

// New returns a Locker that takes its locks through rdb. It does no I/O and
// starts no goroutine. The caller keeps rdb and closes it after the Locker.
//
// On a client whose ContextTimeoutEnabled is set, a caller who is alone sends its
// commands itself, which saves two switches between goroutines for each: a tenth
// to a third of the time of a lock on a server nearby. Hooks of the client then run
// on the caller's goroutine, and must not block it. On another client, whose reads
// cannot be ended in time, a goroutine always does it. The option is one of the
// client's, and applies to whatever else it is used for.
//
// A hook of the client sees arguments that print as what they say but are no
// strings, and commands that serve again once its call has returned: it must copy
// what it wants to keep. The context that it gets is not that of one caller.
//
// A client of one server, of Sentinel (redis.NewFailoverClient) or of a cluster
// will do. A redis.Ring, and a client of a cluster that reads from replicas, are
// refused. A *redis.Client that follows a replica (ReplicaOnly) cannot be told
// from another one: with it each lock fails with ErrUnavailable, and Check says why.
// A wrapper should embed the client itself. Behind one that hides what it wraps
// each waiter of a process that died costs up to two seconds, and in a cluster it
// does not take turns fairly with processes whose client is not hidden.
//
// A bad setting is an error that names the option.
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
		return nil, errors.New("reqlock: WithQuarantine is a setting of NewQuorum alone")
	}
	if err := redisstore.CheckReplicas(rdb, s.replicas); err != nil {
		return nil, fmt.Errorf("reqlock: WithReplicas: %w", err)
	}
	process, err := newProcess()
	if err != nil {
		return nil, fmt.Errorf("reqlock: New: %w", err)
	}
	redisStore, err := redisstore.New(rdb, s.prefix, process, s.replicas)
	if err != nil {
		return nil, fmt.Errorf("reqlock: WithPrefix: the prefix %w", err)
	}
	return &Locker{rdb: rdb, engine: engine.New(redisStore, s.engineConfig(process)), settings: s}, nil
}

// newProcess returns the id of a process that never was: 32 hex digits.
func newProcess() (string, error) {
	id, err := uuid.NewRandom()
	return strings.ReplaceAll(id.String(), "-", ""), err
}

// Must returns l, and panics if err is not nil. It wraps New where a bad
// setting is a programmer's error: locks := core.Must(core.New(rdb)).
func Must(l *Locker, err error) *Locker {
	if err != nil {
		panic(err)
	}
	return l
}

// With returns a view of the Locker with other settings. It shares everything
// else: connections, waiting lines, observers. A bad setting panics, and so
// does one that only New and NewQuorum take.
func (l *Locker) With(opts ...Option) *Locker {
	view := *l
	for _, opt := range opts {
		must(opt != nil, "With: an option is nil")
		if o, ok := opt.(rootOption); ok {
			panic("reqlock: " + o.name + " is a setting of the whole Locker, and none of a view: give it to New or NewQuorum")
		}
		if err := opt.apply(&view.settings); err != nil {
			panic(err)
		}
	}
	if err := view.settings.check(); err != nil {
		panic(err)
	}
	return &view
}

// Close ends the Locker and all its views. From now on nobody gets a lock:
// newcomers and waiters get ErrClosed. Holders may finish; Close waits for
// them and for all commands under way, and returns nil.
//
// When ctx ends first, the contexts of the remaining holders are cancelled
// with ErrClosed, their keys are left to their TTL, and Close returns ctx's
// error. It may be called more than once. A nil ctx is the background context.
func (l *Locker) Close(ctx context.Context) error {
	if l.quorum != nil {
		defer func() { _ = l.quorum.Disconnect() }() // the error of a second Close says only that
	}
	if err := l.engine.Close(orBackground(ctx)); err != nil {
		return fmt.Errorf("reqlock: close: %w", err)
	}
	return nil
}

// isNil reports whether an interface holds nothing, or a nil pointer.
func isNil(rdb redis.UniversalClient) bool {
	if rdb == nil {
		return true
	}
	v := reflect.ValueOf(rdb)
	return v.Kind() == reflect.Pointer && v.IsNil()
}
