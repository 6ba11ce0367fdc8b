package docs_test

import (
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	pb "github.com/reqlock/reqlock/examples/bankpb"
)

// wantRefusedTransfer sends two transfers at once, as the page does by grpcurl, which few
// machines have. The page must show the refusal of the one and the reply to the other.
func wantRefusedTransfer(t *testing.T, address, text string) {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	type result struct {
		reply *pb.TransferReply
		err   error
	}
	results := make(chan result, 2)
	for range 2 {
		go func() {
			request := &pb.TransferRequest{Account: &pb.Account{Id: "42"}, Cents: 10}
			reply, err := pb.NewBankClient(conn).Transfer(t.Context(), request)
			results <- result{reply, err}
		}()
	}
	refused, done := <-results, <-results
	if got := status.Code(refused.err); got != codes.Aborted || done.err != nil || done.reply.GetCents() != 90 {
		t.Fatalf("got %v, and then %v and %v", refused.err, done.reply, done.err)
	}
	shows := []string{"Code: Aborted", "Message: " + status.Convert(refused.err).Message(), `"cents": "90"`}
	for _, detail := range status.Convert(refused.err).Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			shows = append(shows, `"domain": "`+detail.GetDomain()+`"`, `"reason": "`+detail.GetReason()+`"`)
		case *errdetails.RetryInfo:
			shows = append(shows, `"retryDelay": "`+detail.GetRetryDelay().AsDuration().String()+`"`)
		}
	}
	for _, part := range shows {
		if !strings.Contains(text, part) {
			t.Errorf("the page does not show %s", part)
		}
	}
}
