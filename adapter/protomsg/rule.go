package protomsg

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/annotated"
)

// A Rule is what the .proto file of a method declares, by the options of
// reqlock/v1/annotations.proto. ReadRules makes Rules. A Rule is safe for concurrent use.
type Rule[R any] struct {
	method *annotated.Method
	parts  *Parts[R]
}

// Parts are what rules need of an adapter and of the code of a program, to make keys.
type Parts[R any] struct {
	Calls[R]
	// Metadata returns the key of metadata with a name, and IdempotencyKey that of the metadata
	// "idempotency-key".
	Metadata       func(name string) core.Key[R]
	IdempotencyKey func() core.Key[R]
	// Header returns the values of metadata.
	Header func(r R, name string) []string
	// Sources are the keys of the program, by the names that rules have for them.
	Sources map[string]core.Key[R]
	// InCode are the methods that the program locks by its code.
	InCode []*Methods
}

// ReadRules returns a Rule for each method of services, also for one that declares nothing. The error
// joins all mistakes: see protolock.New.
func ReadRules[R any](services []protoreflect.ServiceDescriptor, parts Parts[R]) ([]Rule[R], error) {
	program := annotated.Program{Sources: slices.Sorted(maps.Keys(parts.Sources))}
	for _, m := range parts.InCode {
		program.InCode = append(program.InCode, m.All()...)
	}
	methods, err := annotated.Read(services, program)
	faults := []error{err}
	rules := make([]Rule[R], len(methods))
	for i, m := range methods {
		rules[i] = Rule[R]{m, &parts}
		faults = append(faults, rules[i].checkSources()...)
	}
	return rules, errors.Join(faults...)
}

// FullMethod returns the full method, "/pkg.Service/Method".
func (r Rule[R]) FullMethod() string { return r.method.FullMethod() }

// IsStream reports whether the client or the server sends more than one message.
func (r Rule[R]) IsStream() bool { return r.method.IsStream() }

// IsDeclared reports whether somebody has decided about the locks of the method: in its file, or by
// Parts.InCode.
func (r Rule[R]) IsDeclared() bool { return r.method.IsDeclared() }

// HasLock reports whether the method declares a lock.
func (r Rule[R]) HasLock() bool { return len(r.method.Locks) > 0 }

// IsIdempotent reports whether the calls of the method run once for their key.
func (r Rule[R]) IsIdempotent() bool { return r.method.Idempotent != nil }

// Lock returns the key of all locks of the method, and the options that the rule sets. They have
// precedence over those of the program. The error says that the Locker, which is not nil, excludes
// them.
func (r Rule[R]) Lock(l *core.Locker) (core.Key[R], []core.Option, error) {
	options := r.method.LockSettings.Options()
	keys := make([]core.Key[R], len(r.method.Locks))
	for i, lock := range r.method.Locks {
		keys[i] = annotated.LockKey(lock, r.key)
	}
	if len(keys) == 1 {
		return keys[0], options, r.allows(l, "lock 1", options)
	}
	return core.All(keys...), options, r.allows(l, "lock 1", options)
}

// CheckLock returns an error if the Locker of the method's middleware, with all options, does not
// allow that a lock of the rule has permits or is shared.
func (r Rule[R]) CheckLock(l *core.Locker) error {
	for i, lock := range r.method.Locks {
		if err := r.allows(l, fmt.Sprintf("lock %d", i+1), lock.Options()); err != nil {
			return err
		}
	}
	return nil
}

// Idempotent is Lock for an idempotent method.
func (r Rule[R]) Idempotent(l *core.Locker) (core.Key[R], []core.Option, error) {
	rule := r.method.Idempotent
	key, options := annotated.IdempotencyKey(rule, r.key), rule.Options()
	if rule.Optional {
		key = key.When(r.hasOneOf(rule.ClientParts()))
	}
	return key, options, r.allows(l, "idempotent", options)
}

// CheckLocker returns an error if the Locker of a middleware for locks, with all options, shares its
// locks, which the rules say.
func CheckLocker(l *core.Locker) error { return annotated.CheckLocker(l) }

// CheckIdempotentOptions returns an error if the options of a middleware for idempotent methods have
// core.WithOptionalKey, which the rules say.
func CheckIdempotentOptions(opts []core.Option) error { return annotated.CheckIdempotent(opts) }

// allows returns an error that says where the rule stands, if a Locker excludes its options.
func (r Rule[R]) allows(l *core.Locker, where string, options []core.Option) error {
	return r.method.Fault(where, adapter.CheckOptions(l, options...))
}

// A Line is one line of the table of all rules: what a method declares, or that it declares nothing.
type Line struct {
	// Method is the full method, "/pkg.Service/Method".
	Method string
	// Kind is "lock", "idempotent", "unlocked", "in code" or "undeclared".
	Kind string
	// Name is the name of a lock or of idempotent calls, or "".
	Name string
	// Key says where the key comes from, as in: field "from.id". It is "" without a lock.
	Key string
	// Settings are those that the file sets, as in: wait 2s, ttl 30s. They do not include the
	// options of the program.
	Settings string
}

// String returns the line as a text for a log.
func (l Line) String() string { return annotated.Rule(l).String() }

// Lines returns the lines of the method in the table of all rules: one for each rule, and at least
// one.
func (r Rule[R]) Lines() []Line {
	var lines []Line
	for _, line := range r.method.Rules() {
		lines = append(lines, Line(line))
	}
	return lines
}

// Declared is a setting of an adapter, for the middleware of a method whose rules a .proto file
// declares. Such a middleware ignores core.WithOptionalKey of its Locker, because the rule says
// whether the key is optional. It does not count as a middleware of a ByMethod in its key either:
// the rules have warnings of their own, and a ByMethod in a source may have more methods.
func Declared(n adapter.Name) adapter.Setting[bool] {
	return adapter.NewSetting[bool](n, "a declared rule", adapter.ForAll)
}
