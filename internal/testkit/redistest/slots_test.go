package redistest

import (
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestSlotTable(t *testing.T) {
	t.Parallel()
	served := func(start, end int, addrs ...string) redis.ClusterSlot {
		r := redis.ClusterSlot{Start: start, End: end}
		for _, addr := range addrs {
			r.Nodes = append(r.Nodes, redis.ClusterNode{Addr: addr})
		}
		return r
	}
	const last = slotCount - 1
	for name, test := range map[string]struct {
		table slotTable
		gap   int
		owner string // of slot 7
	}{
		"nothing":   {nil, 0, ""},
		"all":       {slotTable{served(0, last, "a", "b")}, slotCount, "a"},
		"in parts":  {slotTable{served(0, 6, "a"), served(7, 7, "b"), served(8, last, "a")}, slotCount, "b"},
		"no first":  {slotTable{served(1, last, "a")}, 0, "a"},
		"no last":   {slotTable{served(0, last-1, "a")}, last, "a"},
		"a hole":    {slotTable{served(0, 6, "a"), served(8, last, "a")}, 7, ""},
		"no master": {slotTable{served(0, 6, "a"), served(7, last)}, 7, ""},
	} {
		if gap := test.table.gap(); gap != test.gap {
			t.Errorf("%s: the gap is at %d, want %d", name, gap, test.gap)
		}
		if owner := test.table.owner(7); owner != test.owner {
			t.Errorf("%s: the owner is %q, want %q", name, owner, test.owner)
		}
	}
}
