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
		ctx, err := free.by.sign(ctx)
		if err != nil {
			return err
		}
		return c.withServer(func(s *server) error { return free.run(ctx, c, s) })
	}
}

// run ends the leases.
func (f *freeing) run(ctx context.Context, c *call, s *server) error {
	lock, err := f.look(ctx, c, s)
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
	if len(f.leases) == 0 {
		c.printEnding(lock)
	}
	end := s.Revoke
	if f.now {
		done.Action, end = "freed", s.FreeNow
		text = fmt.Sprintf("freed %s (%s), %s", name, lock.Key, count(leases, "lease", "leases"))
		c.printRecordsOf(lock)
		question := fmt.Sprintf("If the holder runs, it acts beside the next one. Type %s to free the lock at once: ", lock.Key)
		if err := c.confirm(ctx, "--now", question, lock.Key.String(), f.yes); err != nil {
			return err
		}
	}
	err = c.within(ctx, func(ctx context.Context) error { return end(ctx, lock) })
	if err != nil && c.change == nil {
		return err
	}
	return c.done(done, text, f.by, err)
}

// look reads the lock, with the leases that free is to end.
func (f *freeing) look(ctx context.Context, c *call, s *server) (lock inspect.Lock, err error) {
	key := c.args[0]
	err = c.within(ctx, func(ctx context.Context) (err error) {
		lock, err = s.Lock(ctx, key)
		if len(f.leases) > 0 || !errors.Is(err, inspect.ErrNotFound) {
			return err
		}
		if record, failed := s.Record(ctx, key); failed == nil {
			return fmt.Errorf("%w: only the record of an idempotent request is left, and its state is %v: reqlock resolve ends an unknown outcome", err, record.State)
		}
		return err
	})
	switch {
	case err == nil && lock.Idempotent:
		return lock, fmt.Errorf("%w: use reqlock resolve then", inspect.ErrAttempt)
	case err == nil:
		err = f.choose(&lock)
	case len(f.leases) > 0 && errors.Is(err, inspect.ErrNotFound): // the lease was seen
		return lock, inspect.ErrChanged
	}
	return lock, err
}

// printEnding says which leases are about to end.
func (c *call) printEnding(lock inspect.Lock) {
	for _, h := range c.viewLock(lock, lock.Process).Holders {
		if h.Kind != inspect.HolderProcess.String() {
			continue
		}
		held := "an unknown time"
		if h.Held > 0 {
			held = h.Held.String()
		}
		fmt.Fprintf(c.problems, "ending the lease %s of process %s, %s, held for %s\n", h.Lease, h.short(), h.where(), held)
	}
}

// printRecordsOf says which processes of the holders have a record.
func (c *call) printRecordsOf(lock inspect.Lock) {
	for _, h := range lock.Holders {
		if p, isRegistered := lock.Process(h.Process); isRegistered {
			fmt.Fprintf(c.problems, "process %s, %s, wrote its record %v ago: it may run\n", nameOfProcess(p).short(), nameOfProcess(p).where(), span(p.Age))
		}
	}
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
