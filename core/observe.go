package core

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/reqlock/reqlock/internal/bridge"
	"github.com/reqlock/reqlock/internal/engine"
)

// kinds maps the engine's kinds of event to the kinds of this package.
var kinds = [...]EventKind{
	engine.Acquired: Acquired,
	engine.Waiting:  Waiting,
	engine.Refused:  Refused,
	engine.Released: Released,
	engine.Renewed:  Renewed,
	engine.Lost:     Lost,
	engine.HeldLong: HeldLong,

	engine.Replayed:  Replayed,
	engine.Committed: Committed,
	engine.Restored:  Restored,
	engine.Closing:   Closing,
	engine.Searched:  Searched,

	engine.HandedOver: HandedOver,

	engine.OutcomeUnknown: OutcomeUnknown,
	engine.Warned:         Warned,
	engine.Outage:         Outage, // or Recovered
}

// grants maps the engine's grants to the grants of this package.
var grants = [...]Grant{
	0:              0,
	engine.Free:    GrantFree,
	engine.Awaited: GrantAwaited,
	engine.Passed:  GrantPassed,
	engine.Handed:  GrantHanded,

	engine.Accepted: GrantAccepted,
}

// endings maps the engine's endings of an attempt to the endings of this package.
var endings = [...]Ending{
	engine.EndAbort:   EndAbort,
	engine.EndCommit:  EndCommit,
	engine.EndDone:    EndDone,
	engine.EndUnknown: EndUnknown,
}

// observe converts an event of the engine and sends it to the observers.
func (s *settings) observe(e engine.Event) {
	event := Event{
		Kind:       kinds[e.Kind],
		Key:        EventKey{e.Key},
		Name:       e.Name,
		Idempotent: e.Attempt,
		Shared:     e.Shared,
		Queued:     e.Queued,
		Waited:     e.Waited,
		Held:       e.Held,
		Grant:      grants[e.Grant],
		Repeated:   e.Repeated,
		Holds:      e.Holds,
		ctx:        e.Context,
	}
	if e.Kind == engine.HeldLong || e.Kind == engine.Closing {
		event.Caller = e.Origin
	} else {
		event.First = e.Origin
	}
	if e.Attempt && (e.Kind == engine.Released || e.Kind == engine.Committed) {
		event.Ending = endings[e.Ending]
	}
	switch {
	case e.Loss != engine.NotLost:
		event.Err = causeOf(e.Loss)
	case e.Kind == engine.Refused:
		event.Err = refusalOf(e.Err, s.retryAfter)
	case e.Kind == engine.Warned:
		event.Err = warningOf(e.Err)
	case e.Kind == engine.Outage:
		s.setOutage(&event, e.Err)
	case e.Kind == engine.OutcomeUnknown:
		event.Err = unknownCause(e)
		event.addFound(e)
	case e.Kind == engine.Searched:
		event.Open, event.Took, event.Holds, event.Held = e.Holds, e.Held, 0, 0
	case e.Err != nil:
		event.Err = unavailable(e.Err)
	}
	s.notify(event)
}

// setOutage sets what an event says of an outage.
func (s *settings) setOutage(event *Event, err error) {
	var outage *engine.OutageOf
	if !errors.As(err, &outage) {
		return
	}
	event.Server = outage.Server
	if outage.Lasted == 0 {
		event.Err = &Error{Kind: ErrUnavailable, Cause: s.explain(outage.Err)}
		return
	}
	event.Kind, event.Lasted, event.Refused, event.Unlocked = Recovered, outage.Lasted, outage.Refused, outage.Unlocked
}

// warningOf returns the Err of a Warned event of the engine.
func warningOf(err error) error {
	var dropped *engine.Dropped
	if !errors.As(err, &dropped) {
		return err
	}
	var counts []string
	for kind, n := range dropped {
		if n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, kinds[kind]))
		}
	}
	return errors.New("reqlock: an observer was too slow or blocked, so events were dropped: " + strings.Join(counts, ", "))
}

// addFound adds what a search has found about the attempt, if the event is that of a search.
func (e *Event) addFound(from engine.Event) {
	var found *engine.Found
	if errors.As(from.Err, &found) {
		e.Attempt, e.Number, e.Age = AttemptID{found.Attempt}, found.Number, found.Age
	}
}

// unknownCause returns why the outcome of an attempt is unknown.
func unknownCause(e engine.Event) error {
	var found *engine.Found
	switch {
	case errors.As(e.Err, &found) && e.Key == "":
		return errUnreadableKey
	case found != nil:
		return errAttemptFound
	case e.Ending == engine.EndUnknown && e.Err != nil:
		return e.Err
	case e.Ending == engine.EndUnknown:
		return errEndedUnknown
	case e.Err != nil:
		return &commitError{unavailable(e.Err), e.GoesOn}
	}
	return errAttemptDied
}

var (
	errEndedUnknown = errors.New("reqlock: the attempt was ended by Unknown")
	errAttemptDied  = errors.New("reqlock: an earlier attempt died or ended unknown")
	errAttemptFound = errors.New("reqlock: a search has found an attempt that died or ended unknown")
	// errUnreadableKey is about a key of the program with a brace, never about one of EndpointKey.
	errUnreadableKey = fmt.Errorf("%w, whose key redis has as a digest only", errAttemptFound)
)

// A commitError says that Redis did not accept a Commit or Done, or that its answer was not sealed.
type commitError struct {
	err    *Error
	goesOn bool
}

func (e *commitError) Error() string {
	what := "the commit failed: "
	if e.goesOn {
		what = "the commit has failed so far, and goes on: "
	}
	return "reqlock: " + what + strings.TrimPrefix(e.err.Error(), "reqlock: ")
}

func (e *commitError) Unwrap() error { return e.err }

// notifyFrom sends an event with the context of a request to all observers.
func (s *settings) notifyFrom(ctx context.Context, event Event) {
	if len(s.observers) == 0 {
		return
	}
	from := ctx // only this copy is moved to the heap
	event.ctx = &from
	s.notify(event)
}

// nameOf returns the name that the events of a key have.
func (l *Locker) nameOf(key lockKey) string {
	if l.settings.name != "" {
		return l.settings.name
	}
	return key.Name
}

// observeRegistered sends a Registered event for each name of a middleware's key, or for the name of
// the view.
func (l *Locker) observeRegistered(names []string, idempotent bool) {
	if len(names) == 0 || l.settings.name != "" {
		names = []string{l.settings.name}
	}
	for _, name := range names {
		if _, again := l.warned.LoadOrStore(registeredName{name, idempotent}, nil); !again {
			l.settings.notify(Event{Kind: Registered, Name: name, Idempotent: idempotent, Shared: l.settings.limit.IsShared()})
		}
	}
}

// A registeredName is a name that the observers know. A program has few.
type registeredName struct {
	name       string
	idempotent bool
}

// eventOf returns an event about a request that the engine does not see.
func (l *Locker) eventOf(kind EventKind, key lockKey, err error) Event {
	return Event{Kind: kind, Key: EventKey{key.Raw}, Name: l.nameOf(key), Shared: l.limitOf(key).IsShared(), Err: err}
}

// nameOfUnread returns the name of a key that could not be read, or "" if it may have several.
func nameOfUnread(about *bridge.About) string {
	if len(about.Names) != 1 {
		return ""
	}
	return about.Names[0]
}

// observeUnread sends a Refused event for a request of which the key or the fingerprint could not be
// read. key has the name. It ignores nil and ErrSkip.
func (l *Locker) observeUnread(ctx context.Context, key lockKey, attempt bool, err error) {
	if err != nil && !errors.Is(err, ErrSkip) {
		l.observeRefused(ctx, key, attempt, err)
	}
}

// observeRefused sends a Refused event for a request that cannot have its key. The key itself
// is not in the event.
func (l *Locker) observeRefused(ctx context.Context, key lockKey, attempt bool, err error) {
	event := l.eventOf(Refused, key, err)
	event.Key, event.Idempotent = EventKey{}, attempt
	l.settings.notifyFrom(ctx, event)
}

// observeUnlocked sends an Unlocked event for each key of a request that runs without locks,
// except for empty keys.
func observeUnlocked(ctx context.Context, l *Locker, keys []lockKey, err error) {
	for _, key := range keys {
		if key.Raw != "" {
			l.engine.CountUnlocked(key.Raw)
			l.settings.notifyFrom(ctx, l.eventOf(Unlocked, key, err))
		}
	}
}
