package grpclock

import (
	"errors"

	"google.golang.org/protobuf/proto"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// NewAnswer returns an answer for core.Answered, with which an operator ends the unknown outcome
// of a call. Copies of the call get it as if a handler had returned reply and err: the message
// if err is nil, and otherwise the status of err. It has no metadata.
//
// The error says that there is neither a message nor an err, or that the message cannot be
// encoded.
func NewAnswer(reply proto.Message, err error) (core.Answer, error) {
	if err == nil && reply == nil {
		return core.Answer{}, errors.New("reqlock: grpclock: NewAnswer: there is neither a message nor an error")
	}
	answer, ok := new(metadataRecorder).answer(reply, err)
	if !ok {
		return core.Answer{}, errors.New("reqlock: grpclock: NewAnswer: the message cannot be encoded")
	}
	return adapter.NewRPCAnswer(answer), nil
}
