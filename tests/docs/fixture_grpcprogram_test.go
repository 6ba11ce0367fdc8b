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
	replies, errs := make(chan *pb.TransferReply, 2), make(chan error, 2)
	for range 2 {
		go func() {
			request := &pb.TransferRequest{Account: &pb.Account{Id: "42"}, Cents: 10}
			reply, err := pb.NewBankClient(conn).Transfer(t.Context(), request)
			replies <- reply
			errs <- err
		}()
	}
	refused, done := status.Convert(<-errs), <-errs // the refusal comes first
	if cents := max((<-replies).GetCents(), (<-replies).GetCents()); refused.Code() != codes.Aborted || done != nil || cents != 90 {
		t.Fatalf("got %v, and then %v with %d cents", refused, done, cents)
	}
	shows := []string{"Code: Aborted", "Message: " + refused.Message(), `"cents": "90"`}
	for _, detail := range refused.Details() {
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
