package grpclock

import (
	"errors"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/reqlock/reqlock/core"
)

// domain is that of the ErrorInfo in a status.
const domain = "reqlock"

// StatusOf returns the status of a call that did not run because of err. It is
// what interceptors send without WithErrorHandler, and what an error handler
// can fall back to:
//
//	return grpclock.StatusOf(err).Err()
//
// It is the outcome of core.OutcomeOf: its code, and as details an ErrorInfo,
// with the domain "reqlock" and the outcome's code in upper case as its reason
// ("BUSY", "NO_KEY"), and a RetryInfo where trying again can help. A status
// error of a key function stays as it is. An error that core.OutcomeOf does not
// know, and nil, is INTERNAL with the reason "INTERNAL". It is never OK.
//
// No status that is made here carries a key, a token or the text of an error.
func StatusOf(err error) *status.Status {
	// What it merely wraps, such as the cause of an ErrUnavailable, comes later.
	if own, ok := err.(interface{ GRPCStatus() *status.Status }); ok && isFailure(own.GRPCStatus()) {
		return own.GRPCStatus()
	}
	outcome, known := core.OutcomeOf(err)
	if !known {
		outcome = core.Outcome{Code: "internal", GRPC: uint32(codes.Internal)}
	}
	if !known || outcome.Code == "key_error" {
		if own := statusIn(err); own != nil {
			return own
		}
	}
	return statusFor(outcome, strings.ReplaceAll(outcome.Code, "_", " "))
}

// statusFor makes the status of an outcome.
func statusFor(o core.Outcome, message string) *status.Status {
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: strings.ToUpper(o.Code), Domain: domain}}
	if o.RetryAfter > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(o.RetryAfter)})
	}
	bare := status.New(codes.Code(o.GRPC), "reqlock: "+message)
	full, err := bare.WithDetails(details...)
	if err != nil { // it cannot fail with these details and without OK
		return bare
	}
	return full
}

// statusIn returns the status of an error, or of one that it wraps; nil if
// there is none, or it is OK. Unlike status.FromError it leaves the message as
// it is: what is wrapped around it is not for clients.
func statusIn(err error) *status.Status {
	var own interface{ GRPCStatus() *status.Status }
	if errors.As(err, &own) && isFailure(own.GRPCStatus()) {
		return own.GRPCStatus()
	}
	return nil
}

func isFailure(s *status.Status) bool { return s.Code() != codes.OK }
