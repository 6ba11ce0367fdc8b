package redisstore

import (
	"github.com/reqlock/reqlock/internal/redis/keyspace"
	"github.com/reqlock/reqlock/internal/redis/pipeline"
	"github.com/reqlock/reqlock/internal/store"
)

// handover runs handover.lua. Replicas acknowledge it as a renewal: otherwise a failover could
// take the key from the ticket.
func (s *Store) handover(t *releaseOp, r *store.ReleaseRequest, done func(store.ReleaseResult, error)) {
	t.toTicket = true
	t.encodeScript(&s.scripts.Handover)
	t.args = append(t.args, t.token.setString(r.Token), t.ttl.setInt(r.Keep.Milliseconds()), t.rejoinToken.setString(r.Ticket))
	t.done, t.decode = done, decodeKeep
	s.pipeline.Do(&t.Call, pipeline.Renew)
}

// accept runs accept.lua.
func (s *Store) accept(r *store.EnqueueRequest, done func(store.Answer, error)) {
	t := s.acquires.get()
	t.init(s, t, r.Target, r.Inline, 0)
	t.fences = r.Fences
	t.encodeScript(&s.scripts.Accept)
	t.encodeKey(&t.queue, keyspace.QueueSuffix)
	t.encodeFence()
	t.encodeLease()
	t.args = append(t.args, t.fences, t.waiter.setString(r.Ticket))
	t.done, t.decode = done, decodeAccept
	s.pipeline.Do(&t.Call, pipeline.Acquire)
}

// decodeAccept decodes the reply of accept.lua. A later send extends the lease of an earlier one,
// so the lease counts from the send of the reply.
func decodeAccept(r pipeline.Reply, x *operation) (store.Answer, error) {
	got, err := decodeRenew(r, x)
	if err != nil || !got.Held {
		return store.Answer{}, err
	}
	return store.Answer{Granted: true, Since: got.Since, Waiting: got.Waiting, Fence: got.Fence, Fences: got.Fences}, nil
}
