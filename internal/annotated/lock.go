package annotated

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/annotatedpb"
)

// A Lock is one key that a call locks.
type Lock struct {
	Key  []Part
	Name string // "": none
	// Shared lets calls hold the key beside each other.
	Shared bool
	// Permits is how many calls may hold the key; 0 is one.
	Permits int
}

// LockKey returns the key of a lock; read returns that of a part.
func LockKey[R any](l Lock, read func(Part) core.Key[R]) core.Key[R] {
	key := keyOf(l.Key, read)
	if l.Name != "" {
		key = key.Named(l.Name)
	}
	switch {
	case l.Shared:
		return key.Shared()
	case l.Permits > 0:
		return key.Permits(l.Permits)
	}
	return key
}

// Options returns the options of core for leases such as those of the lock. A lock that is held
// alone has none.
func (l Lock) Options() []core.Option {
	switch {
	case l.Shared:
		return []core.Option{core.WithShared(true)}
	case l.Permits > 0:
		return []core.Option{core.WithPermits(l.Permits)}
	}
	return nil
}

// isSameAs reports whether two locks of one method have the same name and key.
func (l Lock) isSameAs(other Lock) bool {
	return l.Name == other.Name && len(l.Key) > 0 && slices.EqualFunc(l.Key, other.Key, Part.equals)
}

// settings returns what the lock has beside a name and a key, as texts.
func (l Lock) settings() []string {
	switch {
	case l.Shared:
		return []string{"shared"}
	case l.Permits > 0:
		return []string{fmt.Sprintf("permits %d", l.Permits)}
	}
	return nil
}

// locks reads the locks of a method, and what they have in common.
func (r *reader) locks(at place, d protoreflect.MethodDescriptor, declared []*annotatedpb.Lock) (locks []Lock, common Settings) {
	for i, rule := range declared {
		at := at.in("lock %d", i+1)
		lock := Lock{Key: r.parts(at, d, rule.GetKey()), Name: rule.GetName()}
		if lock.Name != "" {
			at.in("name").check("", adapter.CheckName(lock.Name))
		}
		lock.Shared, lock.Permits = rule.GetShared(), int(rule.GetPermits())
		switch {
		case lock.Permits == 0:
		case lock.Shared:
			at.in("shared").faultf("permits is set, too: keep one of them")
		default:
			at.in("permits").check("WithPermits: ", adapter.CheckOptions(nil, core.WithPermits(lock.Permits)))
		}
		if same := slices.IndexFunc(locks, lock.isSameAs); same >= 0 {
			at.faultf("it has the name and the key of lock %d", same+1) // written for another key, probably
		}
		locks = append(locks, lock)
		at.in("wait").same(&common.Wait, at.wait(rule.GetWait()))
		at.in("ttl").same(&common.TTL, at.ttl(rule.GetTtl()))
	}
	return locks, common
}
