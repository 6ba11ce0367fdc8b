package connectlock

import (
	"context"
	"errors"
	"net/http"
	"os"
	"slices"
	"syscall"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/adapter/protomsg"
	"github.com/reqlock/reqlock/core"
)

// NewAnswer returns an answer for core.Answered, with which an operator ends the unknown outcome of a
// call. Copies of the call get it as if a handler had returned reply and err: the message if err is
// nil, and otherwise the error with its code, details and metadata.
//
// The error says that there is neither a message nor an err, or that the message cannot be encoded.
func NewAnswer(reply proto.Message, err error) (core.Answer, error) {
	if err == nil && reply == nil {
		return core.Answer{}, self.Errorf("NewAnswer: there is neither a message nor an error")
	}
	answer, ok := answerOf(replayed{connect.NewResponse(&struct{}{}), reply}, err, side{})
	if !ok {
		return core.Answer{}, self.Errorf("NewAnswer: the message cannot be encoded")
	}
	return adapter.NewRPCAnswer(answer), nil
}

const (
	// replayedMark is the header that marks a replay.
	replayedMark = "Idempotent-Replayed"
	// metaMark is the trailer in a stored answer that names the other trailers that are the metadata of
	// an error: once for each of the last values of a trailer. The Connect protocol sends metadata as
	// headers. The prefix is reserved for Connect.
	metaMark = "Connect-Error-Meta"
	// replacedMark, in the header or the trailer of a stored answer, names what the handler has
	// replaced there: a value that an interceptor outside sets is not sent in a replay.
	replacedMark = "Connect-Replaced"
)

// A side is the header and the trailer that are sent beside the answer of a unary call.
type side struct{ header, trailer http.Header }

// sideOf returns a copy of what was set by connect.CallInfoForHandlerContext.
func sideOf(ctx context.Context) side {
	info, ok := connect.CallInfoForHandlerContext(ctx)
	if !ok { // in a test without a server
		return side{}
	}
	return side{info.ResponseHeader().Clone(), info.ResponseTrailer().Clone()}
}

// since returns what was added after before.
func (s side) since(before side) side {
	return side{added(before.header, s.header), added(before.trailer, s.trailer)}
}

// added returns the values of after that are not at the beginning of those of before. It marks the names
// whose values of before are gone.
func added(before, after http.Header) http.Header {
	more := make(http.Header)
	for name, values := range after {
		switch old := before[name]; {
		case len(old) <= len(values) && slices.Equal(old, values[:len(old)]):
			values = values[len(old):]
		default:
			merge(more, replacedMark, []string{name})
		}
		merge(more, name, values)
	}
	slices.Sort(more[replacedMark])
	return more
}

// merge adds values of a name, in its canonical form.
func merge(into http.Header, name string, values []string) {
	if name = http.CanonicalHeaderKey(name); len(values) > 0 {
		into[name] = append(into[name], values...)
	}
}

// answerOf returns the answer of a handler, with what it has set beside the answer. ok is false if it
// cannot be replayed.
func answerOf(reply connect.AnyResponse, err error, beside side) (a adapter.RPCAnswer, ok bool) {
	header, trailer := added(nil, beside.header), added(nil, beside.trailer)
	a = adapter.RPCAnswer{Header: header, Trailer: trailer}
	if err != nil {
		e := *sent(err) // a copy, because Meta changes the error, which several calls may return
		a.Code, a.Text = uint32(e.Code()), e.Message()
		for _, detail := range e.Details() {
			a.Details = append(a.Details, adapter.RPCDetail{Type: "type.googleapis.com/" + detail.Type(), Value: detail.Bytes()})
		}
		if connect.IsWireError(&e) { // Connect does not send the metadata of another service
			return a, true
		}
		for name, values := range e.Meta() {
			merge(trailer, name, values)
			merge(trailer, metaMark, slices.Repeat([]string{name}, len(values)))
		}
		slices.Sort(trailer[metaMark])
		return a, true
	}
	if reply == nil {
		return a, false
	}
	for name, values := range reply.Header() {
		merge(header, name, values)
	}
	for name, values := range reply.Trailer() {
		merge(trailer, name, values)
	}
	m, ok := reply.Any().(proto.Message)
	if !ok {
		return a, false
	}
	a.Type = string(m.ProtoReflect().Descriptor().FullName())
	a.Message, err = proto.Marshal(m)
	return a, err == nil
}

// sent returns the error that Connect sends for the error of a handler.
func sent(err error) *connect.Error {
	var own *connect.Error
	switch {
	case errors.As(err, &own) && own != nil:
		return own
	case errors.Is(err, context.Canceled):
		return connect.NewError(connect.CodeCanceled, err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return connect.NewError(connect.CodeDeadlineExceeded, err)
	case errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET), // Connect takes it for the client's connection
		err.Error() == "client disconnected", err.Error() == "http2: stream closed": // as HTTP/2 says it
		return connect.NewError(connect.CodeCanceled, err)
	}
	return connect.NewError(connect.CodeUnknown, err)
}

// A replayed is the response of a replay. Only Connect can make a connect.Response, and its type has
// that of the message, which an interceptor does not know before the handler has run. Connect and the
// interceptors outside read a response by these methods.
type replayed struct {
	connect.AnyResponse // for its header and its trailer
	message             proto.Message
}

// Any returns the message.
func (r replayed) Any() any { return r.message }

// replay returns the stored answer of a call. Without a response, an error that has no code says why
// the answer cannot be read.
func replay(ctx context.Context, call *Call, stored adapter.RPCAnswer) (connect.AnyResponse, error) {
	if stored.Code != 0 {
		return nil, errorOfReplay(ctx, stored)
	}
	message, err := protomsg.Reply(call.procedure(), stored)
	if err != nil {
		return nil, &core.Error{Kind: core.ErrUnreplayable, Cause: err}
	}
	r := replayed{connect.NewResponse(&struct{}{}), message}
	header, trailer := canonical(stored.Header), canonical(stored.Trailer)
	if info, ok := connect.CallInfoForHandlerContext(ctx); ok { // Connect adds the response to these
		dropReplaced(info.ResponseHeader(), header)
		dropReplaced(info.ResponseTrailer(), trailer)
	}
	put(r.Header(), header)
	put(r.Trailer(), trailer)
	r.Header().Set(replayedMark, "true")
	return r, nil
}

// errorOfReplay returns an answer that is an error, and sets its header and its trailer.
func errorOfReplay(ctx context.Context, stored adapter.RPCAnswer) error {
	e := connect.NewError(connect.Code(stored.Code), errors.New(stored.Text))
	for _, detail := range stored.Details {
		addDetail(e, &anypb.Any{TypeUrl: detail.Type, Value: detail.Value})
	}
	header, trailer := canonical(stored.Header), canonical(stored.Trailer)
	marks := trailer[metaMark]
	trailer.Del(metaMark)
	for _, name := range marks {
		name = http.CanonicalHeaderKey(name)
		if last := len(trailer[name]) - 1; last >= 0 { // otherwise it is never replayed
			e.Meta()[name] = slices.Insert(e.Meta()[name], 0, trailer[name][last])
			trailer[name] = trailer[name][:last]
		}
	}
	if info, ok := connect.CallInfoForHandlerContext(ctx); ok {
		put(info.ResponseHeader(), header)
		put(info.ResponseTrailer(), trailer)
		info.ResponseHeader().Set(replayedMark, "true")
	}
	return e
}

// canonical returns stored metadata as a header.
func canonical(stored map[string][]string) http.Header {
	header := make(http.Header)
	for name, values := range stored {
		merge(header, name, values)
	}
	return header
}

// put adds a stored header or trailer, in place of what it has replaced.
func put(into, stored http.Header) {
	dropReplaced(into, stored)
	for name, values := range stored {
		if name != replacedMark {
			merge(into, name, values)
		}
	}
}

// dropReplaced removes what a stored header or trailer has replaced.
func dropReplaced(from, stored http.Header) {
	for _, name := range stored[replacedMark] {
		from.Del(name)
	}
}
