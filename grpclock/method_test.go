package grpclock_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/grpclock"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
)

// ByMethod locks the listed methods, each with its own key, and no other methods.
func TestByMethod(t *testing.T) {
	t.Parallel()
	locks, rdb := adaptertest.Locker(t)
	adaptertest.Hold(t, rdb)
	methods := map[string]grpclock.Key{
		pb.Bank_Transfer_FullMethodName: grpclock.Field[*pb.TransferRequest]("account.id"),
		"/reqlock.bank.v1.Bank/Deposit": grpclock.Field[*pb.DepositRequest]("account.id"),
		healthpb.Health_Watch_FullMethodName: grpclock.Field[*healthpb.HealthCheckRequest](
			"service"),
	}
	key := grpclock.ByMethod(methods)
	clear(methods) // the map is the caller's to use again
	client := serve(t, &bank{
		deposit: func(s depositServer) error {
			_, err := sum(s)
			return err
		},
		batch: func(s batchServer) error { return s.Send(&pb.TransferReply{}) },
	}, unary(locks, key), streams(locks, key))

	_, err := client.Balance(within(t), &pb.BalanceRequest{Account: &pb.Account{Id: theKey}})
	wantCode(t, err, codes.OK)
	_, err = client.Transfer(within(t), transferOf("free"))
	wantCode(t, err, codes.OK)
	_, err = client.Transfer(within(t), transferOf(theKey))
	wantCode(t, err, codes.Aborted)
	_, err = deposit(within(t), client, 1)
	wantCode(t, err, codes.Aborted)
	wantCode(t, batchCall(within(t), client), codes.OK)
}

func TestByMethodPanics(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]string{
		"/reqlock.bank.v1.Bank/Tranfser":   `no method "Tranfser"`,
		"/reqlock.bank.v1.Bnak/Transfer":   `no service "reqlock.bank.v1.Bnak"`,
		"/bank.v1.Bank/Transfer":           `no service "bank.v1.Bank"`,
		"/reqlock.bank.v1.Account/id":      `no service "reqlock.bank.v1.Account"`,
		"/reqlock.bank.v1.Bank/Transfer/":  `no method "Transfer/"`,
		"/reqlock.bank.v1.Bank/":           `no method ""`,
		"reqlock.bank.v1.Bank/Transfer":    "is not of the form",
		"/reqlock.bank.v1.Bank.Transfer":   "is not of the form",
		"//reqlock.bank.v1.Bank/Transfer":  `no service ""`,
		"/reqlock.bank.v1.Bank /Transfer":  `no service "reqlock.bank.v1.Bank "`,
		"/Transfer":                        "is not of the form",
		"":                                 "is not of the form",
		"/reqlock.bank.v1.Bank/transfer":   `no method "transfer"`,
		"/reqlock.bank.v1.Bank/Transfer\n": `no method "Transfer\n"`,
	} {
		message := adaptertest.PanicText(func() { grpclock.ByMethod(map[string]grpclock.Key{method: literal}) })
		if !strings.HasPrefix(message, "reqlock: grpclock: ByMethod: ") || !strings.Contains(message, want) {
			t.Errorf("%q: panic %q", method, message)
		}
	}
	for name, keys := range map[string]map[string]grpclock.Key{
		"nil":          nil,
		"empty":        {},
		"the zero Key": {pb.Bank_Transfer_FullMethodName: {}},
	} {
		if message := adaptertest.PanicText(func() { grpclock.ByMethod(keys) }); !strings.HasPrefix(message, "reqlock: grpclock: ByMethod") {
			t.Errorf("%s: panic %q", name, message)
		}
	}
}

// Nothing is locked for a method that is not listed, whatever its message is.
func TestByMethodSkips(t *testing.T) {
	t.Parallel()
	key := grpclock.ByMethod(map[string]grpclock.Key{pb.Bank_Transfer_FullMethodName: literal})
	checkKey(t, key, grpclock.NewCall(t.Context(), pb.Bank_Settle_FullMethodName, nil), "", core.ErrSkip)
	checkKey(t, key, grpclock.NewCall(t.Context(), pb.Bank_Transfer_FullMethodName, nil), theKey, nil)
}

// The name of a key is in events, whichever method it belongs to.
func TestByMethodKeepsTheNameOfTheKey(t *testing.T) {
	t.Parallel()
	key := grpclock.ByMethod(map[string]grpclock.Key{
		pb.Bank_Transfer_FullMethodName: literal.Named("account"),
		pb.Bank_Settle_FullMethodName:   core.KeyOf(func(*grpclock.Call) (string, error) { return "own", nil }),
	})
	for method, want := range map[string]string{pb.Bank_Transfer_FullMethodName: "account", pb.Bank_Settle_FullMethodName: ""} {
		if got, err := key.Read(grpclock.NewCall(t.Context(), method, nil)); got.Name() != want || err != nil {
			t.Errorf("%s: name %q, %v", method, got.Name(), err)
		}
	}
}
