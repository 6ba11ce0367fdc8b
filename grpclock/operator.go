package grpclock

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/keypart"
	"github.com/reqlock/reqlock/internal/bridge"
)

// EndpointKey returns the key under which core.Locker.ReadRecord and core.Locker.Resolve find a
// call of an IdempotentUnaryServerInterceptor, from what its client sent:
//
//	key, err := grpclock.EndpointKey(pb.Bank_Transfer_FullMethodName, "ada", "8e03978e-40d5-43e8")
//
// parts are the values that the key read from the call: one value, or one for each
// argument of core.Join, in that order. An idempotency key may have its quotes, as the client
// sent it. For one value with Named, the part is the name, a colon and the value; with
// Hashed or HMAC, it is the digest. For a core.Join with Named, call
// core.EndpointKey: docs/unknown-outcomes.md shows how. The log line of an unknown outcome has the
// whole key, so that EndpointKey is not needed there.
//
// The error says which argument is wrong. It is core.ErrNoKey for an empty part, and
// core.ErrInvalidKey for a malformed idempotency key.
func EndpointKey(fullMethod string, parts ...string) (string, error) {
	if !strings.HasPrefix(fullMethod, "/") || strings.Count(fullMethod, "/") != 2 {
		return "", fmt.Errorf("reqlock: %s: EndpointKey: %q is no full method, such as /bank.Bank/Transfer", self, fullMethod)
	}
	key, err := keypart.OfParts(parts)
	if err != nil {
		return "", fmt.Errorf("reqlock: %s: EndpointKey: %w", self, err)
	}
	return core.EndpointKey("", fullMethod, key), nil
}

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
	encoded, ok := new(metadataRecorder).encode(reply, err)
	if !ok {
		return core.Answer{}, errors.New("reqlock: grpclock: NewAnswer: the message cannot be encoded")
	}
	return bridge.NewAnswer(encoded).(core.Answer), nil //nolint:forcetypeassert // see bridge
}
