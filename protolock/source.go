package protolock

import (
	"errors"
	"fmt"

	"github.com/reqlock/reqlock/adapter/protomsg"
	"github.com/reqlock/reqlock/internal/annotated"
)

// checkSources returns the mistakes of the sources that rules name.
func (r *Rules) checkSources() error {
	var faults []error
	for _, m := range r.methods {
		for i, lock := range m.Locks {
			faults = append(faults, r.checkParts(m, fmt.Sprintf("lock %d", i+1), lock.Key, len(lock.Key) == 1)...)
		}
		if m.Idempotent != nil {
			faults = append(faults, r.checkParts(m, "idempotent", m.Idempotent.Key, false)...)
		}
	}
	return errors.Join(faults...)
}

// checkParts returns the mistakes of the sources in the key of a rule. isWhole says that one part
// is the whole key of a lock.
func (r *Rules) checkParts(m *annotated.Method, rule string, parts []annotated.Part, isWhole bool) (faults []error) {
	for _, part := range parts {
		key, ok := r.sources[part.Text]
		if part.Kind != annotated.Source || !ok {
			continue
		}
		err := annotated.CheckSource(key, isWhole)
		if err == nil {
			err = protomsg.Check(m.Descriptor, key)
		}
		faults = append(faults, m.Fault(fmt.Sprintf("%s: key: %v", rule, part), err))
	}
	return faults
}
