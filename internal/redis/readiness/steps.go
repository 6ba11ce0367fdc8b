package readiness

import (
	"bytes"
	"context"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/store"
)

// lock takes the key, checks that another token cannot take it, renews it, and releases it.
func (p *probe) lock(ctx context.Context) error {
	if err := p.take(ctx, 1); err != nil {
		return err
	}
	second := store.TakeRequest{Target: p.request(2), WithHolder: true}
	refused, err := do(ctx, p.store.Take, second)
	if err != nil {
		return err
	}
	longer := p.request(1)
	longer.TTL *= 2
	renewed, err := do(ctx, p.store.Renew, store.RenewRequest{Target: longer})
	if err != nil {
		return err
	}
	release := p.release(longer)
	release.NoWaiters = true
	released, err := do(ctx, p.store.Release, release)
	if err != nil {
		return err
	}
	return verify(!refused.Granted && renewed.Held && released.Status == store.Freed)
}

// lockByScript sends the source of a script. A Store needs that after each restart of a server.
func (p *probe) lockByScript(ctx context.Context) error {
	r := p.request(3)
	eval := command.New(3, []any{"eval", p.scripts.Take.Source, 1, p.name(), r.Token, r.TTL.Milliseconds()})
	if err := p.send(ctx, eval); err != nil {
		return err
	}
	released, err := do(ctx, p.store.Release, p.release(r))
	if err != nil {
		return err
	}
	return verify(released.Status == store.Freed)
}

// attempt begins and commits an idempotent request, replays its answer, and reads its outcome.
func (p *probe) attempt(ctx context.Context) error {
	first, again := p.enqueue(p.request(4)), p.enqueue(p.request(5))
	first.Attempt = &store.Attempt{Fingerprint: []byte(keyMark), Keep: first.TTL}
	again.Attempt = first.Attempt
	commit := p.release(first.Target)
	commit.Attempt, commit.Ending, commit.Record = first.Attempt, store.EndCommit, []byte("done")
	begun, err := do(ctx, p.store.Enqueue, first)
	if err != nil {
		return err
	}
	renewed, err := do(ctx, p.store.Renew, store.RenewRequest{Target: first.Target, Attempt: first.Attempt})
	if err != nil {
		return err
	}
	committed, err := do(ctx, p.store.Release, commit)
	if err != nil {
		return err
	}
	replayed, err := do(ctx, p.store.Enqueue, again)
	if err != nil {
		return err
	}
	outcome, err := do(ctx, p.store.Outcome, store.OutcomeRequest{Key: p.target.key, Bound: p.check.bound})
	if err != nil {
		return err
	}
	resolve := store.ResolveRequest{
		Key: p.target.key, Bound: p.check.bound, Seen: outcome.Attempt, Resolution: store.ResolveNotDone,
	}
	resolved, err := do(ctx, p.store.Resolve, resolve)
	if err != nil {
		return err
	}
	return verify(begun.Granted && renewed.Held && committed.Record == store.WasStored &&
		replayed.Verdict == store.Done && bytes.Equal(replayed.Record, commit.Record) &&
		outcome.State == store.WasAnswered && resolved == store.Changed)
}

// share queues two readers and a writer behind a holder. The readers get shared leases
// together, and then the writer gets the key. Without pub/sub the release of the holder
// removes all of them from the queue.
func (p *probe) share(ctx context.Context) error {
	holder, writer := p.enqueue(p.request(8)), p.enqueue(p.request(10))
	first, second := p.enqueue(p.requestOf(store.Unlimited, 9)), p.enqueue(p.requestOf(store.Unlimited, 11))
	granted, err := do(ctx, p.store.Enqueue, holder)
	if err != nil {
		return err
	}
	held := granted.Granted
	for _, waiter := range []*store.EnqueueRequest{&first, &writer, &second} {
		waiter.Join = true
		waiting, err := do(ctx, p.store.Enqueue, *waiter)
		if err != nil {
			return err
		}
		held = held && !waiting.Granted
	}
	if _, err := do(ctx, p.store.Release, p.release(holder.Target)); err != nil {
		return err
	}
	for _, reader := range []store.EnqueueRequest{first, second} {
		reading, err := do(ctx, p.store.Enqueue, reader)
		if err != nil {
			return err
		}
		held = held && reading.Granted
	}
	refused, err := do(ctx, p.store.Enqueue, writer)
	if err != nil {
		return err
	}
	renewed, err := do(ctx, p.store.Renew, store.RenewRequest{Target: second.Target})
	if err != nil {
		return err
	}
	for _, reader := range []store.Target{first.Target, second.Target} {
		released, err := do(ctx, p.store.Release, p.release(reader))
		if err != nil {
			return err
		}
		held = held && released.Status != store.NotHeld
	}
	writing, err := do(ctx, p.store.Enqueue, writer)
	if err != nil {
		return err
	}
	freed, err := do(ctx, p.store.Release, p.release(writer.Target))
	if err != nil {
		return err
	}
	return verify(held && refused.Shared && renewed.Held && writing.Granted && freed.Status == store.Freed)
}

// handOff queues a waiter behind a holder. The release of the holder hands the key to the
// waiter and sends a hint.
func (p *probe) handOff(ctx context.Context) error {
	holder, waiter := p.enqueue(p.request(6)), p.enqueue(p.request(7))
	waiter.Join = true
	granted, err := do(ctx, p.store.Enqueue, holder)
	if err != nil {
		return err
	}
	waiting, err := do(ctx, p.store.Enqueue, waiter)
	if err != nil {
		return err
	}
	released, err := do(ctx, p.store.Release, p.release(holder.Target))
	if err != nil {
		return err
	}
	if p.pubsubErr == nil {
		if err := p.awaitMessage(ctx, waiter.Token); err != nil {
			return err
		}
	}
	waiter.Fences = 1
	confirmed, err := do(ctx, p.store.Enqueue, waiter)
	if err != nil {
		return err
	}
	renewed, err := do(ctx, p.store.Renew, store.RenewRequest{Target: waiter.Target, Fences: waiter.Fences})
	if err != nil {
		return err
	}
	freed, err := do(ctx, p.store.Release, p.release(waiter.Target))
	if err != nil {
		return err
	}
	handed := p.pubsubErr != nil || released.Status == store.Handed
	return verify(granted.Granted && !waiting.Granted && handed && confirmed.Granted &&
		renewed.Held && renewed.Fence > confirmed.Fence && freed.Status == store.Freed)
}
