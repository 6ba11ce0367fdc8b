package annotated

import (
	"slices"
	"strings"
)

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
