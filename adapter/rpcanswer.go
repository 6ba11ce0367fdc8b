package adapter

import (
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/answer"
	"github.com/reqlock/reqlock/internal/bridge"
)

// An RPCAnswer is the answer of a unary call: a message if the Code is 0 (OK), and otherwise the rest
// of a status. Messages have the binary form of Protocol Buffers.
type RPCAnswer struct {
	Header, Trailer map[string][]string // what the handler has set
	Code            uint32
	Type            string // the full name of the message
	Message         []byte
	Text            string // of the status
	Details         []RPCDetail
}

// An RPCDetail is a detail of a status: a google.protobuf.Any.
type RPCDetail struct {
	Type  string // its type URL
	Value []byte
}

// NewRPCAnswer returns the answer for core.Answered: see grpclock.NewAnswer.
func NewRPCAnswer(a RPCAnswer) core.Answer {
	return bridge.NewAnswer(a.encode()).(core.Answer) //nolint:forcetypeassert // see bridge
}

// encode returns the bytes that are stored. Metadata that is never replayed is left out.
func (a RPCAnswer) encode() []byte {
	reply := answer.Reply{
		Header: answer.Metadata(a.Header), Trailer: answer.Metadata(a.Trailer),
		Code: a.Code, Type: a.Type, Message: a.Message, Text: a.Text,
	}
	for _, detail := range a.Details {
		reply.Details = append(reply.Details, answer.Detail{URL: detail.Type, Value: detail.Value})
	}
	return answer.EncodeReply(nil, reply)
}

// rpcAnswerOf returns a stored answer.
func rpcAnswerOf(reply answer.Reply) RPCAnswer {
	a := RPCAnswer{
		Header: reply.Header, Trailer: reply.Trailer,
		Code: reply.Code, Type: reply.Type, Message: reply.Message, Text: reply.Text,
	}
	for _, detail := range reply.Details {
		a.Details = append(a.Details, RPCDetail{Type: detail.URL, Value: detail.Value})
	}
	return a
}
