package connectlock

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// self is the name of this package in errors.
const self = adapter.Name("connectlock")

// WithErrorHandler sets the function that chooses the error of calls that do not run: ErrorOf if not
// set. handle gets the error of core.Enter or Locker.Begin, and returns the error to send. Use
// core.RefusalOf or errors.Is to find the meaning of err; its text is not for clients.
//
// A *connect.Error that handle wraps together with err, as fmt.Errorf("%w: %w", own, err) does, is
// sent too, without the text around it. A call that did not run does not get a success by mistake: if
// handle returns nil, or an error that is and wraps no *connect.Error, such as err itself, the error is
// ErrorOf(err). An error of handle is sent with its own details and metadata alone.
//
// handle is not called for errors that a handler returns. It is not called either if the handler of a
// stream sends or returns before it has received the first message: that is always INTERNAL.
func WithErrorHandler(handle func(c *Call, err error) error) core.Option {
	return errorHandler.Option(handle)
}

// errorHandler is the setting of WithErrorHandler.
var errorHandler = adapter.NewSetting[func(c *Call, err error) error](self, "WithErrorHandler", adapter.ForAll)

// domain is the Domain of the ErrorInfo in an error.
const domain = "reqlock"

// pushback is the trailer by which a server tells the retry policy of a gRPC client when to retry
// (gRFC A6). A retry policy does not read a RetryInfo.
const pushback = "Grpc-Retry-Pushback-Ms"

// ErrorOf returns the error of a call that did not run because of err. Interceptors use it without
// WithErrorHandler, and an error handler can call it.
//
// The code is that of core.RefusalOf, and the message the Detail of the refusal. The error has an
// ErrorInfo as detail: its domain is "reqlock", and its reason is the refusal's code in upper case
// ("BUSY", "NO_KEY"). If a retry can help, a RetryInfo is another detail, and the metadata has
// Retry-After, in whole seconds. For the retry policy of a gRPC client, the metadata has
// Grpc-Retry-Pushback-Ms: the time of the RetryInfo, or -1 if a retry is useless.
//
// A *connect.Error that is err, or that the function of a core.KeyOf has returned, is returned
// unchanged. nil, or an error that core.RefusalOf does not know, is INTERNAL with the reason
// "INTERNAL".
//
// No error that ErrorOf creates contains a key, a token or the text of an error. Each call creates
// another one, which the caller may change.
func ErrorOf(err error) *connect.Error {
	// Only err itself: a wrapped one, such as in the cause of an ErrUnavailable, counts only below.
	if own := coded(err); own != nil {
		return own
	}
	refused := adapter.RefusalOf(err)
	if refused.Code == "internal" || refused.Code == "key_error" {
		if own := codedIn(err); own != nil {
			return own
		}
	}
	return errorFor(refused)
}

// errorFor returns the error of a refusal.
func errorFor(r core.Refusal) *connect.Error {
	e := connect.NewError(connect.Code(r.GRPC), errors.New(r.Detail))
	info := &errdetails.ErrorInfo{Reason: strings.ToUpper(r.Code), Domain: domain}
	if r.Part != "" {
		info.Metadata = map[string]string{"part": r.Part}
	}
	if r.First != "" { // such a refusal has no Part
		info.Metadata = map[string]string{"first": r.First}
	}
	addDetail(e, info)
	adapter.SetRefusalHeader(e.Meta(), r)
	e.Meta().Del("Cache-Control") // net/http logs a line for it, as a trailer of gRPC
	if r.RetryAfter <= 0 {
		e.Meta()[pushback] = []string{"-1"}
		return e
	}
	addDetail(e, &errdetails.RetryInfo{RetryDelay: durationpb.New(r.RetryAfter)})
	e.Meta()[pushback] = []string{wholeMilliseconds(r.RetryAfter)}
	return e
}

// addDetail adds a valid message, which can be encoded, to the details of an error.
func addDetail(e *connect.Error, m proto.Message) {
	if detail, err := connect.NewErrorDetail(m); err == nil {
		e.AddDetail(detail)
	}
}

// wholeMilliseconds rounds up, so that a client does not retry too early.
func wholeMilliseconds(d time.Duration) string {
	whole := d.Milliseconds()
	if d%time.Millisecond > 0 {
		whole++
	}
	return strconv.FormatInt(whole, 10)
}

// coded returns the error that Connect sends for err, if err itself has a code; nil otherwise.
func coded(err error) *connect.Error {
	switch own := err.(type) { //nolint:errorlint // only err itself
	case *refusal:
		return own.sent
	case *connect.Error:
		if own != nil && own.Code() != 0 {
			return own
		}
	}
	return nil
}

// codedIn returns the first error with a code in the tree of err, which Connect sends, or nil.
func codedIn(err error) *connect.Error {
	var own *connect.Error
	if errors.As(err, &own) {
		return coded(own)
	}
	return nil
}

// reasonIn returns the reason of an error of ErrorOf, and "" for any other error.
func reasonIn(e *connect.Error) string {
	for _, detail := range e.Details() {
		if detail.Type() != "google.rpc.ErrorInfo" {
			continue
		}
		if info, err := detail.Value(); err == nil {
			if info, ok := info.(*errdetails.ErrorInfo); ok && info.GetDomain() == domain {
				return info.GetReason()
			}
		}
	}
	return ""
}

// A refusal is the error for the client, and its cause for the interceptors outside. The error may be
// one that the program uses for several calls, so nothing changes it.
type refusal struct {
	sent  *connect.Error
	cause error
}

// Error returns the text of the error for the client alone.
func (r *refusal) Error() string { return r.sent.Error() }

// As finds the error for the client, which Connect sends, before one in the cause.
func (r *refusal) As(target any) bool {
	sent, ok := target.(**connect.Error)
	if ok {
		*sent = r.sent
	}
	return ok
}

// Unwrap returns the cause, for errors.Is and errors.As.
func (r *refusal) Unwrap() error { return r.cause }

// A refuser makes the errors of the calls that an interceptor refuses.
type refuser struct {
	rpc     adapter.RPC[*Call]
	onError func(*Call, error) error // nil means ErrorOf
}

// refuserOf returns the refuser of an interceptor. l has its options.
func refuserOf(l *core.Locker) refuser {
	onError, _ := errorHandler.Value(l)
	return refuser{rpc(), onError}
}

// refuse returns the error of a call that does not run because of err.
func (r refuser) refuse(entry adapter.Entry, call *Call, err error) error {
	refused := r.refusalOf(call, err)
	r.rpc.Refused(entry, refused)
	return refused
}

// refusalOf returns the refusal of a call because of err.
func (r refuser) refusalOf(call *Call, err error) *refusal {
	if r.onError != nil {
		own := r.onError(call, err)
		if chosen := r.rpc.Chosen(own, err); chosen != nil {
			return &refusal{coded(chosen), own}
		}
	}
	return &refusal{ErrorOf(err), err}
}
