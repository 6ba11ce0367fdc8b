package inspect_test

import (
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/inspect"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// A client that has last seen the cluster before a slot moved finds the keys of the slot.
func TestKeysOfAMovedSlotAreFound(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	for _, node := range cluster.Nodes() {
		node.Grant(append(redistest.PrefixRights("{app}:"), rights...)...)
	}
	tag := inspect.WithPrefix("{app}:")
	locks := newLocker(t, cluster.Client(t), core.WithPrefix("{app}:"), core.WithTTL(time.Minute))
	must(locks.Lock(t.Context(), "k"))(t)
	must(locks.With(core.WithPermits(2)).Lock(t.Context(), "permits"))(t)
	must(locks.Begin(t.Context(), "pay", nil))(t)
	list := newInspector(t, cluster.Client(t), tag)
	inspectors := make(map[string]*inspect.Inspector)
	for _, key := range []string{"k", "permits", "i:pay"} {
		inspectors[key] = newInspector(t, cluster.Client(t), tag) // each one meets the old master itself
		must(inspectors[key].Lock(t.Context(), key))(t)
	}
	must(list.Locks(t.Context(), inspect.Filter{}))(t)

	old := cluster.MasterOf("{app}:")
	for _, node := range cluster.Masters() {
		if node != old {
			cluster.MoveSlot("{app}:", node)
			break
		}
	}
	for key, i := range inspectors {
		if lock, err := i.Lock(t.Context(), key); err != nil || len(lock.Holders) != 1 {
			t.Errorf("%s: %+v, %v", key, lock, err)
		}
	}
	if page, err := list.Locks(t.Context(), inspect.Filter{}); err != nil || len(page.Locks) != 3 {
		t.Errorf("%+v, %v", page, err)
	}
	if record, err := inspectors["i:pay"].Record(t.Context(), "pay"); err != nil || record.State != core.StateRunning {
		t.Errorf("%+v, %v", record, err)
	}
}
