package redistest

import (
	"context"
	"fmt"
	"strconv"
)

// Move is the move of a slot from one master to another. Call its methods on the goroutine
// of the test.
type Move struct {
	cluster  *Cluster
	slot     int
	from, to *Server
}

// MoveSlot moves the slot of the key, with all its keys, to another master. It returns when
// all nodes know the new master.
func (c *Cluster) MoveSlot(key string, to *Server) {
	c.tb.Helper()
	c.BeginMove(key, to).Finish()
}

// BeginMove begins to move the slot of the key, and moves no key yet. Until Finish the old
// master executes commands for the keys that it has, and replies ASK for all others. The
// reply to a command with several keys, of which one master has only some, is TRYAGAIN.
func (c *Cluster) BeginMove(key string, to *Server) *Move {
	c.tb.Helper()
	m := &Move{cluster: c, slot: c.Slot(key), from: c.MasterOf(key), to: to}
	if m.from == to {
		c.tb.Fatalf("move slot %d to %s: it is there", m.slot, to.Addr())
	}
	// In this order: the new master must accept the clients that the old one redirects.
	to.mustRun("CLUSTER", "SETSLOT", m.slot, "IMPORTING", m.from.id())
	m.from.mustRun("CLUSTER", "SETSLOT", m.slot, "MIGRATING", to.id())
	return m
}

// Keys moves these keys, which must be in the slot. It ignores missing keys.
func (m *Move) Keys(keys ...string) {
	m.cluster.tb.Helper()
	migrate := []any{"MIGRATE", "127.0.0.1", m.to.port, "", 0, readyTimeout.Milliseconds()}
	if password := m.to.password(); password != "" {
		migrate = append(migrate, "AUTH", password)
	}
	if user := m.to.administrator(); user != "" {
		migrate = append(migrate, "AUTH2", user, noPassword)
	}
	migrate = append(migrate, "KEYS")
	for _, key := range keys {
		migrate = append(migrate, key)
	}
	m.cluster.migrate.Lock()
	defer m.cluster.migrate.Unlock()
	m.from.mustRun(migrate...)
}

// Finish moves all remaining keys, and then the slot. It returns when all nodes know the new
// master.
func (m *Move) Finish() {
	tb := m.cluster.tb
	tb.Helper()
	for {
		keys, err := m.from.admin().ClusterGetKeysInSlot(tb.Context(), m.slot, 100).Result()
		if err != nil {
			tb.Fatalf("CLUSTER GETKEYSINSLOT of %s: %v", m.from.Addr(), err)
		}
		if len(keys) == 0 {
			break
		}
		m.Keys(keys...)
	}
	// The new master first: otherwise the two would redirect clients to each other.
	id := m.to.id()
	m.to.mustRun("CLUSTER", "SETSLOT", m.slot, "NODE", id)
	m.from.mustRun("CLUSTER", "SETSLOT", m.slot, "NODE", id)
	m.cluster.nodes.await(tb, "the move of slot "+strconv.Itoa(m.slot), func(ctx context.Context) error {
		table, err := m.cluster.healthy(ctx)
		if err == nil && table.owner(m.slot) != m.to.Addr() {
			err = fmt.Errorf("slot %d is not at %s yet: %v", m.slot, m.to.Addr(), table)
		}
		return err
	})
}
