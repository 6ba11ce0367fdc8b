package redisstore

import (
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/pipeline"
	"github.com/reqlock/reqlock/internal/redis/topology"
	"github.com/reqlock/reqlock/internal/store"
)

// CanCompare reports whether the client is that of one server, or of Sentinel: see store.Comparer.
func (s *Store) CanCompare() bool {
	_, isServer := s.rdb.(topology.Server)
	return isServer
}

// Compare runs compare.lua: see store.Comparer.
func (s *Store) Compare(seen []store.Seen, bound time.Duration, done func(changed []int, err error)) {
	t := s.compares.get()
	t.init(s, t, store.Target{Bound: bound}, false, 0)
	t.encode(seen)
	t.done = done
	s.pipeline.Do(&t.Call, pipeline.Release)
}

// compareOp is a Compare.
type compareOp struct {
	operation
	many    []any // its arguments
	parts   []arg // the memory of the keys and values among them
	count   int   // how many keys it compares
	changed []int
	done    func([]int, error)
}

// encode sets the arguments.
func (t *compareOp) encode(seen []store.Seen) {
	t.count = len(seen)
	for len(t.parts) < 2*t.count {
		t.parts = append(t.parts, arg{})
	}
	keys, values := t.parts[:t.count], t.parts[t.count:2*t.count]
	t.script = &t.store.scripts.Compare
	t.many = append(t.many[:0], "evalsha", t.script.SHA, t.count)
	for i := range keys {
		keys[i].buffer = t.store.names.AppendLock(keys[i].buffer[:0], seen[i].Key)
		t.many = append(t.many, &keys[i])
	}
	for i := range values {
		t.many = append(t.many, values[i].setString(seen[i].Holder))
	}
	t.Key, t.args = keys[0].buffer, t.many
}

// Settle delivers the result.
func (t *compareOp) Settle(got pipeline.Reply, uncertain bool) {
	err := got.Err
	if err == nil && !t.decode(got.Value) {
		err = command.UnexpectedReply(got.Value)
	}
	if err != nil {
		t.done(nil, command.NewFault(err, uncertain))
		return
	}
	t.done(t.changed, nil)
}

// decode sets the indexes of the reply. It reports whether these are right.
func (t *compareOp) decode(value any) bool {
	t.changed = t.changed[:0]
	indexes, isList := value.([]any)
	for _, v := range indexes {
		i, isNumber := v.(int64)
		if !isNumber || i < 1 || i > int64(t.count) {
			return false
		}
		t.changed = append(t.changed, int(i-1))
	}
	return isList
}

// Late does nothing: the waiters have asked since.
func (t *compareOp) Late(pipeline.Reply) {}

// Free puts the operation back into its pool.
func (t *compareOp) Free() {
	t.clear()
	t.done = nil
	t.store.compares.free.Put(t)
}
