package annotated

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// A Method is a method of a service with its rules.
type Method struct {
	Descriptor protoreflect.MethodDescriptor
	// Locks has one entry for each key that a call locks, and LockSettings is what they have in
	// common.
	Locks        []Lock
	LockSettings Settings
	// Idempotent is nil if calls are not idempotent.
	Idempotent *Idempotent
	// Unlocked is true if the method declares that it has no rule.
	Unlocked bool
	// InCode is true if the code of the program locks the method.
	InCode bool

	hasOption bool // even an unreadable one
}

// FullMethod returns the name of the method in the form of gRPC, "/pkg.Service/Method".
func (m *Method) FullMethod() string {
	return fmt.Sprintf("/%s/%s", m.Descriptor.Parent().FullName(), m.Descriptor.Name())
}

// IsStream reports whether the client or the server sends more than one message.
func (m *Method) IsStream() bool {
	return m.Descriptor.IsStreamingClient() || m.Descriptor.IsStreamingServer()
}

// IsDeclared reports whether somebody has decided about the locks of the method.
func (m *Method) IsDeclared() bool { return m.hasOption || m.InCode }

// Fault returns the error for a mistake in a rule that only the program can find. where is the
// rule or a part of it, such as "lock 1".
func (m *Method) Fault(where string, err error) error {
	var faults []error
	placeOf(&faults, m.Descriptor).in("%s", where).check("", err)
	return errors.Join(faults...)
}

// A Rule is one line of the table of all rules: what a method declares, or that it declares
// nothing.
type Rule struct {
	// Method is the full method, "/pkg.Service/Method".
	Method string
	// Kind is "lock", "idempotent", "unlocked", "in code" or "undeclared".
	Kind string
	// Name is the name of a lock or of idempotent calls, or "".
	Name string
	// Key says where the key comes from, as in: field "from.id". It is "" without a lock.
	Key string
	// Settings are those that the file sets, as in: wait 2s, ttl 30s. They do not include the
	// options of the interceptors.
	Settings string
}

// String returns the rule as one line for a log.
func (r Rule) String() string {
	text := r.Method + ": " + r.Kind
	if r.Name != "" {
		text += " " + r.Name
	}
	if r.Key != "" {
		text += ": " + r.Key
	}
	if r.Settings != "" {
		text += ": " + r.Settings
	}
	return text
}

// Rules returns the lines of a method in the table: one for each rule, and at least one.
func (m *Method) Rules() []Rule {
	var lines []Rule
	add := func(kind, name string, key []Part, settings []string) {
		lines = append(lines, Rule{m.FullMethod(), kind, name, textOf(key), strings.Join(settings, ", ")})
	}
	for _, lock := range m.Locks {
		add("lock", lock.Name, lock.Key, slices.Concat(lock.settings(), m.LockSettings.texts()))
	}
	if i := m.Idempotent; i != nil {
		settings := i.Settings.texts()
		if i.Optional {
			settings = append([]string{"optional"}, settings...)
		}
		add("idempotent", i.Name, i.Key, settings)
	}
	switch {
	case m.InCode:
		add("in code", "", nil, nil)
	case m.Unlocked:
		add("unlocked", "", nil, nil)
	case len(lines) == 0:
		add("undeclared", "", nil, nil)
	}
	return lines
}
