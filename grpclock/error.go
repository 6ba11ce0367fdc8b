package grpclock

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// self is the name of this package in errors.
const self = adapter.Name("grpclock")

// WithErrorHandler sets the function that chooses the status of calls that do not
// run: StatusOf if not set. handle gets the error of core.Enter or Locker.Begin, and
// returns the status error to send. Use core.RefusalOf or errors.Is to find the
// meaning of err; its text is not for clients.
//
// A status that handle wraps together with err, as fmt.Errorf("%w: %w", status, err)
// does, is sent too, without the text around it. A call that did not run does not get
// a success by mistake: if handle returns nil, a status OK, or an error without a
// status of its own, such as err itself, the status is StatusOf(err).
//
// The trailer grpc-retry-pushback-ms has the time of a RetryInfo in the status. Without one
// it has the value of StatusOf(err). If handle sets the trailer itself, its value is sent.
//
// handle is not called for errors that a handler returns. It is not called either if
// the handler of a stream sends or returns before it has received the first message:
// that is always INTERNAL.
func WithErrorHandler(handle func(c *Call, err error) error) core.Option {
	return errorHandler.Option(handle)
}

// errorHandler is the setting of WithErrorHandler.
var errorHandler = adapter.NewSetting[func(c *Call, err error) error](self, "WithErrorHandler", adapter.ForAll)

// domain is the Domain of the ErrorInfo in a status.
const domain = "reqlock"

// StatusOf returns the status of a call that did not run because of err. Interceptors
// use it without WithErrorHandler, and an error handler can call it:
//
//	return grpclock.StatusOf(err).Err()
//
// The status is that of core.RefusalOf, and its message the Detail of the refusal. It has an
// ErrorInfo as detail: its domain is "reqlock", and its reason is the refusal's code in upper case
// ("BUSY", "NO_KEY").
// If a retry can help, a RetryInfo is another detail. A status error of the function of
// a core.KeyOf is returned unchanged. nil, or an error that core.RefusalOf does not know,
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
	refused := adapter.RefusalOf(err)
	if refused.Code == "internal" || refused.Code == "key_error" {
		if own := statusIn(err); own != nil {
			return own
		}
	}
	return statusFor(refused)
}

// statusFor returns the status of a refusal.
func statusFor(r core.Refusal) *status.Status {
	info := &errdetails.ErrorInfo{Reason: strings.ToUpper(r.Code), Domain: domain}
	if r.Part != "" {
		info.Metadata = map[string]string{"part": r.Part}
	}
	if r.First != "" { // such a refusal has no Part
		info.Metadata = map[string]string{"first": r.First}
	}
	details := []protoadapt.MessageV1{info}
	if r.RetryAfter > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(r.RetryAfter)})
	}
	bare := status.New(codes.Code(r.GRPC), r.Detail)
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

// A refusal is the status for the client, and its cause for the interceptors outside.
type refusal struct {
	status   *status.Status
	cause    error
	pushback string // the value of pushbackTrailer, or ""
}

// refuse returns the error of a call that does not run, and sets its trailer.
func (c *config) refuse(ctx context.Context, entry adapter.Entry, call *Call, err error) error {
	refused := c.refusalOf(call, err)
	c.rpc.Refused(entry, refused)
	pushBack(ctx, entry, refused)
	return refused
}

// refusalOf returns the refusal of a call because of err. A status that the error handler
// chooses has the trailer of its RetryInfo, or else the one that the refusal would have
// without the error handler.
func (c *config) refusalOf(call *Call, err error) *refusal {
	refused := newRefusal(StatusOf(err), err)
	if c.onError != nil {
		own := c.onError(call, err)
		if chosen := c.rpc.Chosen(own, err); chosen != nil {
			refused.status, refused.cause = statusIn(chosen), own
			refused.pushback = cmp.Or(pushbackOf(refused.status), refused.pushback)
		}
	}
	return refused
}

// newRefusal returns a refusal with a status.
func newRefusal(s *status.Status, cause error) *refusal {
	return &refusal{status: s, cause: cause, pushback: pushbackOf(s)}
}

// Error returns the text of the status alone.
func (r *refusal) Error() string { return r.status.Err().Error() }

// GRPCStatus returns the status for the client.
func (r *refusal) GRPCStatus() *status.Status { return r.status }

// Unwrap returns the cause, for errors.Is and errors.As.
func (r *refusal) Unwrap() error { return r.cause }
