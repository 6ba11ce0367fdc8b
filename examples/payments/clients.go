package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/reqlock/reqlock/examples/bankpb"
)

// A client sends a request to the service at an address, on a connection of its own.
type client func(ctx context.Context, addr string, r request) answer

// A request is what a user asks of a bank, in any protocol.
type request struct {
	do   string // "transfer", "settle", "payments", "payouts", "orders" or "balance"
	user string
	transfer
	item string // of an order
	key  string // the idempotency key of a payment or a payout
}

// An answer is the answer of a service, in any protocol.
type answer struct {
	// status is "done", "unknown" if it is unknown whether the request took effect, or else the
	// status of the protocol. A reason follows, if that is not that the lock is busy.
	status   string
	retry    string // what contains the time to retry; "" if the answer has no time
	replayed bool   // marked as the answer to an earlier request
	content  string // what is equal in a replay and the first answer
}

const done = "done"

// statusOf returns the status of an answer, given that of the protocol and the reason of reqlock.
func statusOf(isDone bool, status, reason string) string {
	switch reason = strings.ToLower(reason); {
	case isDone:
		return done
	case reason == "outcome_unknown":
		return "unknown"
	case reason == "" || reason == "busy":
		return status
	}
	return status + " " + reason
}

func unanswered(err error) answer { return answer{status: fmt.Sprintf("no answer: %v", err)} }

func sendHTTP(ctx context.Context, addr string, r request) answer {
	method := http.MethodPost
	if r.do == "balance" {
		method = http.MethodGet
	}
	url := "http://" + addr + "/accounts/" + r.user + "/" + r.do + "?item=" + r.item
	body := fmt.Sprintf(`{"to":%q,"cents":%d}`, r.To, r.Cents)
	sent, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return unanswered(err)
	}
	sent.Header = http.Header{"Authorization": {"Bearer " + r.user}, "Content-Type": {"application/json"}}
	if r.key != "" {
		sent.Header.Set("Idempotency-Key", strconv.Quote(r.key))
	}
	own := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := own.Do(sent)
	if err != nil {
		return unanswered(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return unanswered(err)
	}
	// A refusal by reqlock is a problem document (RFC 9457). Other answers have no code.
	var problem struct{ Code string }
	_ = json.Unmarshal(text, &problem)
	a := answer{
		status:   statusOf(response.StatusCode/100 == 2, strconv.Itoa(response.StatusCode), problem.Code),
		replayed: response.Header.Get("Idempotent-Replayed") == "true",
		content:  response.Status + response.Header.Get("Content-Type") + string(text),
	}
	if response.Header.Get("Retry-After") != "" {
		a.retry = "Retry-After"
	}
	return a
}

func sendGRPC(ctx context.Context, addr string, r request) answer {
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return unanswered(err)
	}
	defer conn.Close()
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+r.user)
	if r.key != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "idempotency-key", strconv.Quote(r.key))
	}
	bank, account := pb.NewBankClient(conn), &pb.Account{Id: r.user}
	moved := &pb.TransferRequest{Account: account, Payee: &pb.Account{Id: r.To}, Cents: r.Cents}
	var header metadata.MD
	var message proto.Message
	switch r.do {
	case "transfer", "payments":
		message, err = bank.Transfer(ctx, moved, grpc.Header(&header))
	case "settle":
		message, err = bank.Settle(ctx, moved)
	case "orders":
		message, err = bank.PlaceOrder(ctx, &pb.PlaceOrderRequest{Item: r.item})
	case "balance":
		message, err = bank.Balance(ctx, &pb.BalanceRequest{Account: account})
	}
	// A refusal by reqlock has its reason in the details.
	a, reason, said := answer{}, "", status.Convert(err)
	for _, detail := range said.Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			reason = d.GetReason()
		case *errdetails.RetryInfo:
			a.retry = "RetryInfo"
		}
	}
	a.status = statusOf(err == nil, code.Code(said.Code()).String(), reason) //nolint:gosec // a code is small
	a.replayed = slices.Equal(header.Get("idempotent-replayed"), []string{"true"})
	delete(header, "idempotent-replayed")
	a.content = fmt.Sprint(header, message) // a map prints in the order of its keys
	return a
}

func sendConnect(ctx context.Context, addr string, r request) answer {
	account := &pb.Account{Id: r.user}
	moved := &pb.TransferRequest{Account: account, Payee: &pb.Account{Id: r.To}, Cents: r.Cents}
	switch r.do {
	case "transfer", "payments":
		return callConnect[pb.TransferReply](ctx, addr+pb.Bank_Transfer_FullMethodName, r, moved)
	case "settle":
		return callConnect[pb.TransferReply](ctx, addr+pb.Bank_Settle_FullMethodName, r, moved)
	case "orders":
		return callConnect[pb.PlaceOrderReply](ctx, addr+pb.Bank_PlaceOrder_FullMethodName, r, &pb.PlaceOrderRequest{Item: r.item})
	}
	return callConnect[pb.BalanceReply](ctx, addr+pb.Bank_Balance_FullMethodName, r, &pb.BalanceRequest{Account: account})
}

func callConnect[Reply, Request any](ctx context.Context, url string, r request, m *Request) answer {
	own := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	sent := connect.NewRequest(m)
	sent.Header().Set("Authorization", "Bearer "+r.user)
	if r.key != "" {
		sent.Header().Set("Idempotency-Key", strconv.Quote(r.key))
	}
	reply, err := connect.NewClient[Request, Reply](own, "http://"+url).CallUnary(ctx, sent)
	if err == nil {
		header := reply.Header()
		return answer{
			status:   done,
			replayed: header.Get("Idempotent-Replayed") == "true",
			content:  fmt.Sprint(header["Transfer-Number"], reply.Any()),
		}
	}
	// A refusal by reqlock has its reason in the details.
	a, reason := answer{}, ""
	if refused, ok := errors.AsType[*connect.Error](err); ok {
		for _, detail := range refused.Details() {
			if info, _ := detail.Value(); info != nil {
				if info, ok := info.(*errdetails.ErrorInfo); ok {
					reason = info.GetReason()
				}
			}
		}
		if refused.Meta().Get("Retry-After") != "" {
			a.retry = "Retry-After"
		}
	}
	a.status = statusOf(false, connect.CodeOf(err).String(), reason)
	return a
}
