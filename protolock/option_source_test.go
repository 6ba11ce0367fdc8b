package protolock_test

import (
	"testing"

	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/protolock"
)

// The methods of a ByMethod in a source need no rule, so the observer gets no event for them.
func TestByMethodInASourceIsNotReported(t *testing.T) {
	t.Parallel()
	sent := &warnings{}
	locks, _ := adaptertest.Locker(t, core.WithObserver(sent.observe))
	a := annotate(t, "", map[string]string{
		"Transfer": `lock { key { source: "account" } } idempotent { key { source: "account" } key { literal: "l" } }`,
	})
	account := grpclock.ByMethod(map[string]grpclock.Key{a.method("Transfer"): accountOf, a.method("Deposit"): accountOf})
	rules := protolock.Must(protolock.New(a.descs(), protolock.Source("account", account)))
	client := serveAnnotated(t, &bank{}, []annotatedBank{a}, rules.ServerOptions(locks)...)[0]
	for range 2 {
		if _, err := client.Transfer(within(t), transferOf("42")); err != nil {
			t.Fatal(err)
		}
	}
	if got := sent.take(); len(got) > 0 {
		t.Errorf("the observer got %q", got)
	}
}

// Registration reads no key.
func TestNoSourceRunsAtRegistration(t *testing.T) {
	t.Parallel()
	runs := 0
	source := core.KeyOf(func(*grpclock.Call) (string, error) {
		runs++
		return theKey, nil
	})
	a := annotate(t, "", map[string]string{
		"Transfer": `lock { key { source: "s" } } idempotent { key { source: "s" } key { metadata: "x-id" } optional: true }`,
		"Deposit":  `lock { key { source: "s" } }`,
	})
	inCode := grpclock.ByMethod(map[string]grpclock.Key{pb.Bank_Settle_FullMethodName: source})
	rules := protolock.Must(protolock.New(a.descs(), protolock.Source("s", source), protolock.InCode(inCode)))
	rules.ServerOptions(adaptertest.UnusedLocker(t))
	if runs != 0 {
		t.Errorf("the source ran %d times", runs)
	}
}
