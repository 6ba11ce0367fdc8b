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

// domain is the Domain of the ErrorInfo in a status.
const domain = "reqlock"

// StatusOf returns the status of a call that did not run because of err. Interceptors
// use it without WithErrorHandler, and an error handler can call it:
//
//	return grpclock.StatusOf(err).Err()
//
// The status is that of core.RefusalOf, with an ErrorInfo as detail: its domain is
// "reqlock", and its reason is the outcome's code in upper case ("BUSY", "NO_KEY").
// If a retry can help, a RetryInfo is another detail. A status error of a key
// function is returned unchanged. nil, or an error that core.RefusalOf does not know,
// is INTERNAL with the reason "INTERNAL". The status is never OK.
//
// The retry policy of a client does not read the RetryInfo. It reads the trailer
// grpc-retry-pushback-ms, which is no part of a status: the interceptors set it, to the
// time of the RetryInfo or to -1. An interceptor of your own sets it by grpc.SetTrailer.
//
// No status that StatusOf creates contains a key, a token or the text of an error.
func StatusOf(err error) *status.Status {
	// Only the status of err itself: a wrapped one, such as in the cause of an
	// ErrUnavailable, counts only below.
	if own, ok := err.(interface{ GRPCStatus() *status.Status }); ok && isFailure(own.GRPCStatus()) {
		return own.GRPCStatus()
	}
	outcome, known := core.RefusalOf(err)
	if !known {
		outcome = core.Refusal{Code: "internal", GRPC: uint32(codes.Internal)}
	}
	if !known || outcome.Code == "key_error" {
		if own := statusIn(err); own != nil {
			return own
		}
	}
	return statusFor(outcome, strings.ReplaceAll(outcome.Code, "_", " "))
}

// statusFor returns the status of an outcome.
func statusFor(o core.Refusal, message string) *status.Status {
	info := &errdetails.ErrorInfo{Reason: strings.ToUpper(o.Code), Domain: domain}
	if o.Part != "" {
		info.Metadata = map[string]string{"part": o.Part}
		message += ": " + o.Part
	}
	details := []protoadapt.MessageV1{info}
	if o.RetryAfter > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(o.RetryAfter)})
	}
	bare := status.New(codes.Code(o.GRPC), "reqlock: "+message)
	full, err := bare.WithDetails(details...)
	if err != nil { // impossible: the details are valid and the code is not OK
		return bare
	}
	return full
}

// statusIn returns the status of an error, or of an error that it wraps; nil if there
// is none, or it is OK. Unlike status.FromError it does not add the text of the
// wrapping errors, which is not for clients.
func statusIn(err error) *status.Status {
	var own interface{ GRPCStatus() *status.Status }
	if errors.As(err, &own) && isFailure(own.GRPCStatus()) {
		return own.GRPCStatus()
	}
	return nil
}

// reasonIn returns the reason of a status of StatusOf, and "" for any other status.
func reasonIn(s *status.Status) string {
	for _, detail := range s.Details() {
		if info, is := detail.(*errdetails.ErrorInfo); is && info.GetDomain() == domain {
			return info.GetReason()
		}
	}
	return ""
}

func isFailure(s *status.Status) bool { return s.Code() != codes.OK }
