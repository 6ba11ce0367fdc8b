package redistest

import (
	"context"
	"fmt"
	"strconv"
)

// Move is a slot on its way from one master to another. Its methods must be
// called on the goroutine of the test.
type Move struct {
	cluster  *Cluster
	slot     int
	from, to *Server
}

// MoveSlot moves the slot of the key with all that is in it to another master,
// and returns when all nodes know.
func (c *Cluster) MoveSlot(key string, to *Server) {
	c.tb.Helper()
	c.BeginMove(key, to).Finish()
}

// BeginMove begins to move the slot of the key, and moves no key yet. Until
// Finish the old master answers for the keys that it has and sends clients to
// the new one for all others, with ASK. A command with several keys, of which
// one side has only a part, is answered TRYAGAIN.
func (c *Cluster) BeginMove(key string, to *Server) *Move {
	c.tb.Helper()
	m := &Move{cluster: c, slot: c.Slot(key), from: c.MasterOf(key), to: to}
	if m.from == to {
		c.tb.Fatalf("move slot %d to %s: it is there", m.slot, to.Addr())
	}
	// In this order: whoever is sent to the new master has to be let in.
	to.tell("CLUSTER", "SETSLOT", m.slot, "IMPORTING", m.from.id())
	m.from.tell("CLUSTER", "SETSLOT", m.slot, "MIGRATING", to.id())
	return m
}

// Keys moves these keys, which must be in the slot. Those that do not exist are
// ignored.
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
	m.from.tell(migrate...)
}

// Finish moves all keys that are left, and then the slot. It returns when all
// nodes know.
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
	// The new master first: between the two a client would be sent to and fro.
	id := m.to.id()
	m.to.tell("CLUSTER", "SETSLOT", m.slot, "NODE", id)
	m.from.tell("CLUSTER", "SETSLOT", m.slot, "NODE", id)
	m.cluster.nodes.await(tb, "the move of slot "+strconv.Itoa(m.slot), func(ctx context.Context) error {
		table, err := m.cluster.healthy(ctx)
		if err == nil && table.owner(m.slot) != m.to.Addr() {
			err = fmt.Errorf("slot %d is not at %s yet: %v", m.slot, m.to.Addr(), table)
		}
		return err
	})
}
