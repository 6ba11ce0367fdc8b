package grpclock_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/reqlock/reqlock/core"
	pb "github.com/reqlock/reqlock/examples/bankpb"
	"github.com/reqlock/reqlock/internal/testkit/adaptertest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// If a handler sends, returns or continues without its lock, the client gets an
// error, and nothing else.
func TestMisbehavingHandlers(t *testing.T) {
	t.Parallel()
	reply := &pb.TransferReply{Cents: 1}
	for name, test := range map[string]struct {
		busy   bool
		handle func(t *testing.T, s batchServer) error
		code   codes.Code
		reason string
	}{
		"sends before it receives": {false, func(t *testing.T, s batchServer) error {
			err := s.Send(reply)
			wantCode(t, err, codes.Internal)
			return err
		}, codes.Internal, "INTERNAL"},
		"sends before it receives, and goes on": {false, func(t *testing.T, s batchServer) error {
			wantCode(t, s.Send(reply), codes.Internal)
			_, err := s.Recv()
			wantCode(t, err, codes.Internal)
			wantCode(t, s.Send(reply), codes.Internal)
			suite.ReceiveAnywhere(t, "the context ends", s.Context().Done())
			return nil
		}, codes.Internal, "INTERNAL"},
		"sends headers before it receives": {false, func(t *testing.T, s batchServer) error {
			wantCode(t, s.SendHeader(metadata.Pairs("x-a", "1")), codes.Internal)
			return nil
		}, codes.Internal, "INTERNAL"},
		"sets headers, and returns before it receives": {false, func(t *testing.T, s batchServer) error {
			wantCode(t, s.SetHeader(metadata.Pairs("x-a", "1")), codes.OK)
			return nil
		}, codes.Internal, "INTERNAL"},
		"sets headers before a refusal": {true, func(t *testing.T, s batchServer) error {
			wantCode(t, s.SetHeader(metadata.Pairs("x-a", "1")), codes.OK)
			_, err := s.Recv()
			wantCode(t, s.SetHeader(metadata.Pairs("x-a", "2")), codes.Aborted)
			return err
		}, codes.Aborted, "BUSY"},
		"returns before it receives":       {false, func(*testing.T, batchServer) error { return nil }, codes.Internal, "INTERNAL"},
		"returns an error of its own then": {false, func(*testing.T, batchServer) error { return status.Error(codes.PermissionDenied, "") }, codes.PermissionDenied, ""},
		"returns nil after a refusal": {true, func(_ *testing.T, s batchServer) error {
			_, _ = s.Recv()
			return nil
		}, codes.Aborted, "BUSY"},
		"returns an error of its own after a refusal": {true, func(_ *testing.T, s batchServer) error {
			_, _ = s.Recv()
			return status.Error(codes.DataLoss, "")
		}, codes.Aborted, "BUSY"},
		"sends after a refusal": {true, func(t *testing.T, s batchServer) error {
			_, err := s.Recv()
			wantCode(t, err, codes.Aborted)
			wantCode(t, s.Send(reply), codes.Aborted)
			wantCode(t, s.SendHeader(metadata.Pairs("x-a", "1")), codes.Aborted)
			if cause := context.Cause(s.Context()); !errors.Is(cause, core.ErrBusy) {
				t.Errorf("the cause of the context is %v", cause)
			}
			return nil
		}, codes.Aborted, "BUSY"},
		"receives again after a refusal": {true, func(t *testing.T, s batchServer) error {
			_, _ = s.Recv()
			_, err := s.Recv()
			wantCode(t, err, codes.Aborted)
			return nil
		}, codes.Aborted, "BUSY"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sent := &warnings{}
			locks, rdb := adaptertest.Locker(t, core.WithObserver(sent.observe))
			if test.busy {
				adaptertest.Hold(t, rdb)
			}
			client := serve(t, &bank{batch: func(s batchServer) error { return test.handle(t, s) }}, streams(locks, accountOf))
			s, err := client.Batch(within(t))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Send(transferOf(theKey)); atEnd(err) != nil {
				t.Fatal(err)
			}
			got, err := s.Recv()
			if got != nil || status.Code(err) != test.code || reasonOf(err) != test.reason {
				t.Errorf("%v, %v", got, err)
			}
			if text := status.Convert(err).Message(); strings.Contains(text, theKey) {
				t.Errorf("the answer contains the key: %s", text)
			}
			if header, _ := s.Header(); len(header["x-a"]) != 0 {
				t.Errorf("header %v", header)
			}
			if !test.busy && adaptertest.IsHeld(t, rdb) {
				t.Error("the key is held")
			}
			warned := sent.take()
			if tooEarly := test.reason == "INTERNAL"; len(warned) > 1 || (len(warned) == 1) != tooEarly || tooEarly && !strings.Contains(warned[0], "receive it first") {
				t.Errorf("the observer got %q", warned)
			}
		})
	}
}
