package protomsg_test

import (
	"fmt"
	"testing"

	"github.com/reqlock/reqlock/adapter/protomsg"
	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// A call is what the keys of an RPC adapter read.
type call struct {
	method  string
	message any
}

// calls say how they read it.
var calls = protomsg.Calls[*call]{
	Method:  func(c *call) string { return c.method },
	Message: func(c *call) any { return c.message },
}

// Keys of messages. A key that does not fit its method is a mistake that registration finds.
func Example() {
	account, err := protomsg.Field[*pb.TransferRequest](calls, "account.id")
	fmt.Println(account, err)
	cents := protomsg.Message(calls, func(m *pb.TransferRequest) string { return fmt.Sprint(m.GetCents()) })

	methods, err := protomsg.ByMethod(calls, map[string]core.Key[*call]{
		pb.Bank_Transfer_FullMethodName: core.Join(account.Named("account"), cents),
	})
	if err != nil {
		panic(err)
	}
	transfer := &call{pb.Bank_Transfer_FullMethodName, &pb.TransferRequest{Account: &pb.Account{Id: "42"}, Cents: 7}}
	key, err := methods.Read(transfer)
	fmt.Println(key.Raw(), err)

	_, err = protomsg.ByMethod(calls, map[string]core.Key[*call]{pb.Bank_Balance_FullMethodName: account})
	fmt.Println(err)
	digest, err := calls.Fingerprint(transfer) // of adapter.RPC
	fmt.Println(len(digest), err)
	// Output:
	// Field("account.id") <nil>
	// 10:account:421:7 <nil>
	// ByMethod: "/reqlock.bank.v1.Bank/Balance": its key reads a *bankpb.TransferRequest, and the message of the method is a reqlock.bank.v1.BalanceRequest
	// 32 <nil>
}
