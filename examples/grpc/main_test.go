package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core/locktest"
	pb "github.com/reqlock/reqlock/examples/grpc/bank/v1"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// dial returns a connection to a server.
func dial(t *testing.T, addr string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// as returns the context of the calls of a user.
func as(t *testing.T, user string) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+user+"-token")
}

// transfer returns a request.
func transfer(from, to string, cents int64) *pb.TransferRequest {
	return &pb.TransferRequest{Account: &pb.Account{Id: from}, Payee: &pb.Account{Id: to}, Cents: cents}
}

// The program starts with an embedded Redis, prints its address, shows that one of
// two transfers is refused, answers calls, and ends when it is interrupted.
func TestRun(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	said, out := io.Pipe()
	ended := make(chan error, 1)
	answered := make(chan struct{}) // one of the two transfers
	answer := sync.OnceFunc(func() { close(answered) })
	defer answer()
	go func() {
		b := newBank(0)
		var calls atomic.Int32
		b.otherBank = func(context.Context) error {
			if calls.Add(1) == 1 {
				<-answered // the second transfer must arrive before the first one ends
			}
			return nil
		}
		ended <- run(ctx, out, "127.0.0.1:0", "", b)
		_ = out.Close()
	}()
	var text strings.Builder
	for lines := bufio.NewScanner(said); !strings.Contains(text.String(), "grpcurl") && lines.Scan(); {
		text.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), "  ") {
			answer()
		}
	}
	go func() { _, _ = io.Copy(io.Discard, said) }()
	for _, want := range []string{"OK: 70 cents are left", "Aborted: Another request holds the lock that this one needs. Reason BUSY of reqlock, try again in 1s"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, &text)
		}
	}
	addr := regexp.MustCompile(`127\.0\.0\.1:[0-9]+`).FindString(text.String())
	conn := dial(t, addr)
	reply, err := pb.NewBankClient(conn).Balance(as(t, "ada"), &pb.BalanceRequest{Account: &pb.Account{Id: "ada"}})
	if reply.GetCents() != 70 || err != nil {
		t.Errorf("%v, %v", reply, err)
	}
	_ = conn.Close()
	interrupt()
	if err := <-ended; err != nil {
		t.Errorf("run: %v", err)
	}
}

// serve starts the server of a bank.
func serve(t *testing.T, locks *locktest.Locks, b *bank) *grpc.ClientConn {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := newServer(locks.Locker, rulesOfBank(), b)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return dial(t, listener.Addr().String())
}

// deposit pays two coins into an account.
func deposit(ctx context.Context, client pb.BankClient, account string) error {
	coins, err := client.Deposit(ctx)
	if err != nil {
		return err
	}
	for range 2 {
		_ = coins.Send(&pb.DepositRequest{Account: &pb.Account{Id: account}, Cents: 5}) // CloseAndRecv says why it fails
	}
	_, err = coins.CloseAndRecv()
	return err
}

// The locks of the methods are those of their accounts and users. Calls without
// rights take no lock.
func TestMethods(t *testing.T) {
	t.Parallel()
	type call = func(context.Context, pb.BankClient) error
	transfers := func(from, to string, cents int64) call {
		return func(ctx context.Context, client pb.BankClient) error {
			_, err := client.Transfer(ctx, transfer(from, to, cents))
			return err
		}
	}
	deposits := func(account string) call {
		return func(ctx context.Context, client pb.BankClient) error { return deposit(ctx, client, account) }
	}
	orders := func(ctx context.Context, client pb.BankClient) error {
		_, err := client.PlaceOrder(ctx, &pb.PlaceOrderRequest{Item: "tea"})
		return err
	}
	reads := func(ctx context.Context, client pb.BankClient) error {
		_, err := client.Balance(ctx, &pb.BalanceRequest{Account: &pb.Account{Id: "ada"}})
		return err
	}
	for name, test := range map[string]struct {
		held string
		user string
		call call
		code codes.Code
	}{
		"transfer":                       {"", "ada", transfers("ada", "bob", 30), codes.OK},
		"transfer, too much":             {"", "ada", transfers("ada", "bob", 101), codes.FailedPrecondition},
		"transfer to an unknown account": {"", "ada", transfers("ada", "eve", 30), codes.NotFound},
		"transfer to oneself":            {"", "ada", transfers("ada", "ada", 30), codes.InvalidArgument},
		"transfer, held":                 {"account:ada", "ada", transfers("ada", "bob", 30), codes.Aborted},
		"transfer, payee held":           {"account:bob", "ada", transfers("ada", "bob", 30), codes.Aborted},
		"transfer without payee":         {"", "ada", transfers("ada", "", 30), codes.InvalidArgument},
		"transfer from another":          {"account:bob", "ada", transfers("bob", "ada", 30), codes.PermissionDenied},
		"transfer of an unknown user":    {"account:ada", "eve", transfers("ada", "bob", 30), codes.Unauthenticated},
		"deposit":                        {"account:ada", "bob", deposits("bob"), codes.OK},
		"deposit of an unknown user":     {"", "eve", deposits("bob"), codes.Unauthenticated},
		"deposit to an unknown account":  {"", "bob", deposits("eve"), codes.NotFound},
		"order":                          {"user:bob", "ada", orders, codes.OK},
		"read":                           {"account:ada", "ada", reads, codes.OK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := locktest.New(t)
			if test.held != "" {
				defer locks.Hold(test.held)()
			}
			client := pb.NewBankClient(serve(t, locks, newBank(0)))
			if err := test.call(as(t, test.user), client); status.Code(err) != test.code {
				t.Errorf("%v", err)
			}
		})
	}
}

// Ten settlements and a stream of coins at once lose no money. Waiting calls form a
// line.
func TestConcurrentCallsLoseNoMoney(t *testing.T) {
	t.Parallel()
	locks := locktest.New(t)
	b := newBank(0)
	client := pb.NewBankClient(serve(t, locks, b))
	release := locks.Hold("account:ada")
	var clients sync.WaitGroup
	for range 10 {
		clients.Go(func() {
			if _, err := client.Settle(as(t, "ada"), transfer("ada", "bob", 10)); err != nil {
				t.Error(err)
			}
		})
	}
	clients.Go(func() {
		if err := deposit(as(t, "bob"), client, "ada"); err != nil {
			t.Error(err)
		}
	})
	locks.AwaitWaiting("account:ada", 11)
	release()
	clients.Wait()
	for account, want := range map[string]int64{"ada": 10, "bob": 200} {
		if got, _ := b.balance(&pb.Account{Id: account}); got != want {
			t.Errorf("%s has %d, not %d", account, got, want)
		}
	}
}

// A transfer that is sent again with its request ID is not made again. Another transfer with
// that ID is refused. A transfer without an ID is an ordinary one.
func TestTransferSentAgain(t *testing.T) {
	t.Parallel()
	b := newBank(0)
	client := pb.NewBankClient(serve(t, locktest.New(t), b))
	ctx := as(t, "ada")
	withID := func(cents int64) *pb.TransferRequest {
		m := transfer("ada", "bob", cents)
		m.RequestId = "8e03978e"
		return m
	}
	for _, replayed := range []int{0, 1} {
		var header metadata.MD
		reply, err := client.Transfer(ctx, withID(10), grpc.Header(&header))
		if err != nil || reply.GetCents() != 90 || len(header.Get("idempotent-replayed")) != replayed {
			t.Errorf("%v, %v, %v", reply, err, header)
		}
	}
	if _, err := client.Transfer(ctx, withID(20)); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("another one: %v", err)
	}
	for range 2 {
		if _, err := client.Transfer(ctx, transfer("ada", "bob", 10)); err != nil {
			t.Errorf("without an ID: %v", err)
		}
	}
	if left, _ := b.balance(&pb.Account{Id: "ada"}); left != 70 {
		t.Errorf("%d are left", left)
	}
}

// grpcurl can list the services without a lock.
func TestReflection(t *testing.T) {
	t.Parallel()
	conn := serve(t, locktest.New(t), newBank(0))
	s, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(as(t, "nobody"))
	if err != nil {
		t.Fatal(err)
	}
	err = s.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}})
	if err != nil {
		t.Fatal(err)
	}
	reply, err := s.Recv()
	if err != nil || !strings.Contains(reply.String(), "bank.v1.Bank") {
		t.Errorf("%v, %v", reply, err)
	}
	_ = s.CloseSend()
}

// A transfer stops if its context ends because the client disconnects or the lock is
// lost.
func TestWorkStopsWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	ctx, leave := context.WithCancel(t.Context())
	leave()
	b := newBank(1 << 62)
	_, err := b.Transfer(ctx, transfer("ada", "bob", 30))
	if balance, _ := b.balance(&pb.Account{Id: "ada"}); balance != 100 || status.Code(err) != codes.Canceled {
		t.Errorf("balance %d, %v", balance, err)
	}
}

// The rules are those of bank.proto, and no method is left out.
func TestRulesOfTheFile(t *testing.T) {
	t.Parallel()
	rules := rulesOfBank()
	var got []string
	for rule := range rules.All() {
		got = append(got, rule.String())
	}
	want := []string{
		`/bank.v1.Bank/Balance: unlocked`,
		`/bank.v1.Bank/Transfer: lock account: field "account.id": wait 0s`,
		`/bank.v1.Bank/Transfer: lock account: field "payee.id": wait 0s`,
		`/bank.v1.Bank/Transfer: idempotent: source "user" + field "request_id": optional, wait 5s`,
		`/bank.v1.Bank/Settle: lock account: field "account.id": wait 5s`,
		`/bank.v1.Bank/Settle: lock account: field "payee.id": wait 5s`,
		`/bank.v1.Bank/PlaceOrder: lock user: source "user": wait 5s`,
		`/bank.v1.Bank/Deposit: lock account: field "account.id": wait 5s`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if left := rules.Undeclared(); len(left) > 0 {
		t.Errorf("%q declare nothing", left)
	}
}
