package main

import (
	"context"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// holderOf returns the only holder of a key.
func holderOf(t *testing.T, o operator, key string) holderView {
	t.Helper()
	holders := lines[lockView](t, o.run(t, "show", key, "--json"))[0].Holders
	if len(holders) != 1 {
		t.Fatalf("%+v", holders)
	}
	return holders[0]
}

func TestFreeEndsALease(t *testing.T) {
	t.Parallel()
	_, rdb, o := start(t)
	locks := newLocker(t, rdb, core.WithTTL(4*time.Second))
	lease := must(locks.Lock(t.Context(), "account:42"))(t)
	v := lines[lockView](t, o.run(t, "show", "account:42", "--json"))[0]
	digest := v.Digest
	register(t, rdb, processOf(lease), v)
	r := o.run(t, "free", "account:42", "--by", "ada\u200b", "--why", "it hangs").want(t, exitOK)
	if !strings.HasPrefix(r.out, "revoked account:42 ("+digest+"), 1 lease: the next holder gets it within ") || !strings.HasSuffix(r.out, `, by "ada\u200b": it hangs`+"\n") {
		t.Error(r.out)
	}
	if want := regexp.MustCompile(`^ending the lease ` + v.Holders[0].Lease + ` of process ` + processOf(lease)[:8] + `, payments "pod-2\\x1b\[31m":7, held for 1m\d+s\n$`); !want.MatchString(r.problems) {
		t.Errorf("%s\nwant %s", r.problems, want)
	}
	suite.AwaitClosed(t, "the holder knows", lease.Context().Done())
	if h := holderOf(t, o, "account:42"); h.Kind != "revoked" {
		t.Errorf("%+v", h)
	}
	r = o.run(t, "free", "account:42").want(t, exitOK, "account:42 ("+digest+") was revoked before: ")
	if r.problems != "" {
		t.Errorf("nothing ends: %s", r.problems)
	}
	o.run(t, "free", "account:42", "--now", "--yes", "--digest").want(t, exitOK, "freed "+digest+" ("+digest+"), 1 lease\n")
	o.run(t, "free", "account:42").want(t, exitNotFound)
}

func TestFreeComparesWhatWasSeen(t *testing.T) {
	t.Parallel()
	_, rdb, o := start(t)
	locks := newLocker(t, rdb)
	lease := must(locks.Lock(t.Context(), "k"))(t)
	seen := holderOf(t, o, "k").Lease
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, action := range [][]string{{"free", "k", "--lease", seen}, {"free", "k", "--now", "--yes", "--lease", seen}} {
		o.run(t, action...).want(t, exitChanged, "changed since it was seen")
	}
	newer := must(locks.Lock(t.Context(), "k"))(t)
	for _, action := range [][]string{{"free", "k", "--lease", seen}, {"free", "k", "--now", "--yes", "--lease", seen}} {
		o.run(t, action...).want(t, exitChanged)
	}
	if err := newer.Release(t.Context()); err != nil {
		t.Errorf("the newer holder: %v", err)
	}
}

func TestOfTwoOperatorsOneFrees(t *testing.T) {
	t.Parallel()
	_, rdb, o := start(t)
	must(newLocker(t, rdb).Lock(t.Context(), "k"))(t)
	seen := holderOf(t, o, "k").Lease
	statuses := make(chan int, 2)
	for range 2 {
		go func() {
			statuses <- o.runUntil(context.WithoutCancel(t.Context()), "free", "k", "--lease", seen).status
		}()
	}
	if a, b := <-statuses, <-statuses; a+b != exitOK+exitChanged || a == b {
		t.Errorf("%d and %d", a, b)
	}
}

func TestFreeEndsOnePermitOfSeveral(t *testing.T) {
	t.Parallel()
	_, rdb, o := start(t)
	permits := core.WithPermits(3)
	kept := must(newLocker(t, rdb).With(permits).Lock(t.Context(), "k"))(t)
	ended := must(newLocker(t, rdb).With(permits).Lock(t.Context(), "k"))(t)
	o.run(t, "free", "k").want(t, exitUsage, "2 leases are out: name one by --lease")
	for _, h := range lines[lockView](t, o.run(t, "show", "k", "--json"))[0].Holders {
		if h.ID == processOf(ended) {
			o.run(t, "free", "k", "--now", "--yes", "--lease", h.Lease, "--json").want(t, exitOK, `{"action":"freed","digest":"`, `","leases":1,"before":"held by process `+processOf(ended)+`, lease `+h.Lease+`","after":"free"}`)
		}
	}
	if err := kept.Release(t.Context()); err != nil {
		t.Errorf("the other permit: %v", err)
	}
	must(newLocker(t, rdb).With(permits).Lock(t.Context(), "k"))(t)
	must(newLocker(t, rdb).With(permits).Lock(t.Context(), "k"))(t)
	r := o.run(t, "free", "k", "--all").want(t, exitOK, "2 leases")
	if strings.Count(r.problems, "silent, held for an unknown time\n") != 2 {
		t.Error(r.problems)
	}
}

func TestFreeNowAsks(t *testing.T) {
	t.Parallel()
	_, rdb, o := start(t)
	lease := must(newLocker(t, rdb).Lock(t.Context(), "k"))(t)
	v := lines[lockView](t, o.run(t, "show", "k", "--json"))[0]
	digest := v.Digest
	register(t, rdb, processOf(lease), v)
	o.run(t, "free", "k", "--now").want(t, exitUsage, "it may run", "or --yes")
	o.isTerminal = true
	for _, input := range []string{"", "\n", "y\n", "k\n"} {
		o.input = input
		o.run(t, "free", "k", "--now").want(t, exitError, "not confirmed: nothing was done", "it may run", "Type "+digest)
	}
	asked, typing := io.Pipe()
	o.typing = asked
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan result, 1)
	go func() { ended <- o.runUntil(ctx, "free", "k", "--now") }()
	_, err := typing.Write([]byte("k")) // it has asked
	cancel()
	suite.Receive(t, "free ends", ended).want(t, exitError, "interrupted")
	if err := errors.Join(err, typing.Close(), lease.Context().Err()); err != nil {
		t.Fatal(err)
	}
	o.typing = nil
	o.input = digest + "\n"
	o.run(t, "free", "k", "--now").want(t, exitOK, "freed k")
	o.isTerminal = false
	lease = must(newLocker(t, rdb).Lock(t.Context(), "k"))(t)
	register(t, rdb, processOf(lease), lockView{})
	o.run(t, "free", "k", "--now", "--yes").want(t, exitOK, "it may run", "freed k")
}

func TestFreeLeavesAttemptsAlone(t *testing.T) {
	t.Parallel()
	_, rdb, o := start(t)
	attempt := must(newLocker(t, rdb).Begin(t.Context(), "pay", nil))(t)
	for _, args := range [][]string{{"free", "pay"}, {"free", "i:pay", "--now"}} {
		if r := o.run(t, args...).want(t, exitError, "idempotent request", "reqlock resolve"); strings.Count(r.problems, "\n") != 1 {
			t.Error(r.problems)
		}
	}
	if err := attempt.Unknown(t.Context(), nil); err != nil {
		t.Error(err)
	}
	o.run(t, "free", "pay").want(t, exitNotFound, "idempotent request is left, and its state is unknown", "reqlock resolve")
}

// An operator who may only read gets an error that names the right, and nothing is changed.
func TestFreeNeedsRights(t *testing.T) {
	t.Parallel()
	server, rdb, _ := start(t)
	o := reader(t, server)
	lease := must(newLocker(t, rdb).Lock(t.Context(), "k"))(t)
	o.run(t, "free", "k").want(t, exitError, "free: redis unavailable", "NOPERM")
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
