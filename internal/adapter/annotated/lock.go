package annotated

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/annotatedpb"
)

// A Lock is one key that a call locks.
type Lock struct {
	Key  []Part
	Name string // "": none
}

// LockKey returns the key function of a lock; read returns that of a part.
func LockKey[R any](l Lock, read func(Part) core.KeyFunc[R]) core.KeyFunc[R] {
	key := keyOf(l.Key, read)
	if l.Name != "" {
		key = core.Named(l.Name, key)
	}
	return key
}

// locks reads the locks of a method, and what they have in common.
func (r *reader) locks(at place, d protoreflect.MethodDescriptor, declared []*annotatedpb.Lock) (locks []Lock, common Settings) {
	for i, rule := range declared {
		at := at.in("lock %d", i+1)
		lock := Lock{Key: r.parts(at, d, rule.GetKey()), Name: rule.GetName()}
		if lock.Name != "" {
			at.in("name").check("", core.CheckName(lock.Name))
		}
		locks = append(locks, lock)
		at.in("wait").same(&common.Wait, at.wait(rule.GetWait()))
		at.in("ttl").same(&common.TTL, at.ttl(rule.GetTtl()))
	}
	return locks, common
}
