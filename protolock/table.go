package protolock

import (
	"iter"

	"github.com/reqlock/reqlock/adapter/protomsg"
)

// A Rule is one line of the table of all rules: what a method declares, or that it declares
// nothing. Its fields are texts: Method, "/pkg.Service/Method"; Kind, which is "lock",
// "idempotent", "unlocked", "in code" or "undeclared"; the Name of a lock or of idempotent calls;
// the Key, as in: field "from.id"; and the Settings of the file, as in: wait 2s, ttl 30s. String is
// one line for a log.
type Rule = protomsg.Line

// All returns the table of all rules, for logs and reviews: one line for each lock, and at least
// one for each method of the services.
func (r *Rules) All() iter.Seq[Rule] {
	return func(yield func(Rule) bool) {
		for _, m := range r.methods {
			for _, line := range m.Lines() {
				if !yield(line) {
					return
				}
			}
		}
	}
}

// Undeclared returns the full methods of the services that declare nothing, and that InCode does
// not name. Their calls run without a lock.
func (r *Rules) Undeclared() []string {
	var names []string
	for _, m := range r.methods {
		if !m.IsDeclared() {
			names = append(names, m.FullMethod())
		}
	}
	return names
}
