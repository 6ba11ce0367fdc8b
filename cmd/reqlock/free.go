package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"

	"github.com/reqlock/reqlock/inspect"
)

// A freeing is what the flags of free say.
type freeing struct {
	now, yes, all bool
	leases        []string
	by            signature
}

// beginFree adds the flags of free.
func beginFree(f *flag.FlagSet) action {
	var free freeing
	f.BoolVar(&free.now, "now", false, "grant the lock to the next waiter at once: only if the process of the holder is dead. A holder that lives acts beside the next one")
	f.BoolVar(&free.yes, "yes", false, "do not ask before --now")
	f.Func("lease", "end only the lease with this `ID` of show; may be repeated", appendTo(&free.leases))
	f.BoolVar(&free.all, "all", false, "end all permits or shared leases")
	free.by.add(f)
	return func(ctx context.Context, c *call) error {
		return c.withServer(func(s *server) error { return free.run(ctx, c, s) })
	}
}

// run ends the leases.
func (f *freeing) run(ctx context.Context, c *call, s *server) error {
	var lock inspect.Lock
	err := c.within(ctx, func(ctx context.Context) (err error) {
		lock, err = s.Lock(ctx, c.args[0])
		return err
	})
	if err == nil {
		err = f.choose(&lock)
	}
	if len(f.leases) > 0 && errors.Is(err, inspect.ErrNotFound) {
		err = inspect.ErrChanged // the lease was seen
	}
	if err != nil {
		return err
	}
	left := span(0)
	for _, h := range lock.Holders {
		left = max(left, span(h.LeaseLeft))
	}
	name, leases := c.nameOf(lock.Key), len(lock.Holders)
	done := doneView{Action: "revoked", Digest: lock.Key.String(), Leases: leases}
	text := fmt.Sprintf("revoked %s (%s), %s: the next holder gets it within %v", name, lock.Key, count(leases, "lease", "leases"), left)
	if !slices.ContainsFunc(lock.Holders, func(h inspect.Holder) bool { return h.Kind != inspect.HolderRevoked }) {
		text = fmt.Sprintf("%s (%s) was revoked before: the next holder gets it within %v", name, lock.Key, left)
	}
	end := s.Revoke
	if f.now {
		done.Action, end = "handed_over", s.HandOver
		text = fmt.Sprintf("handed over %s (%s), %s", name, lock.Key, count(leases, "lease", "leases"))
		if err := f.confirm(ctx, c, lock); err != nil {
			return err
		}
	}
	if err := c.within(ctx, func(ctx context.Context) error { return end(ctx, lock) }); err != nil {
		return err
	}
	return c.done(done, text, f.by)
}

// choose leaves only those leases in the lock that free is to end.
func (f *freeing) choose(lock *inspect.Lock) error {
	if len(f.leases) > 0 {
		lock.Holders = slices.DeleteFunc(lock.Holders, func(h inspect.Holder) bool {
			return h.Lease == "" || !slices.Contains(f.leases, string(h.Lease))
		})
		if len(lock.Holders) == 0 {
			return inspect.ErrChanged
		}
		return nil
	}
	if len(lock.Holders) > 1 && !f.all {
		return misuse("%d leases are out: name one by --lease, as show prints it, or end them by --all", len(lock.Holders))
	}
	return nil
}

// confirm asks before --now.
func (f *freeing) confirm(ctx context.Context, c *call, lock inspect.Lock) error {
	if lock.Idempotent { // which HandOver refuses
		return nil
	}
	for _, h := range lock.Holders {
		p, isRegistered := lock.Process(h.Process)
		if !isRegistered {
			continue
		}
		fmt.Fprintf(c.problems, "Process %s, %s, wrote its record %v ago: it may run.\n", nameOfProcess(p).short(), nameOfProcess(p).where(), span(p.Age))
	}
	question := fmt.Sprintf("If the holder runs, it acts beside the next one. Type %s to free the lock at once: ", lock.Key)
	return c.confirm(ctx, "--now", question, lock.Key.String(), f.yes)
}
