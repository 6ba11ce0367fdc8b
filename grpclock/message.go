package grpclock

import (
	"fmt"
	"reflect"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/protomsg"
	"github.com/reqlock/reqlock/internal/adapter/registration"
	"github.com/reqlock/reqlock/internal/keytext"
)

// Message reads the key from the message of a call, with the function get. With
// generated getters the compiler checks the types:
//
//	grpclock.Message((*pb.TransferRequest).GetAccountId)
//	grpclock.Message(func(m *pb.TransferRequest) string { return m.GetAccount().GetId() })
//
// M may be an interface, for the messages of several methods. An empty key is
// core.ErrNoKey. A message of another type refuses the call with INTERNAL, since the
// key does not fit the method: see ByMethod. A nil get panics.
func Message[M any](get func(M) string) Key {
	registration.Must(self, get != nil, "Message needs a function")
	key := core.KeyOf(func(c *Call) (string, error) {
		m, err := messageOf[M](c)
		if err != nil {
			return "", err
		}
		return keytext.Text(get(m))
	}).Describe(fmt.Sprintf("Message(func(%v) string)", reflect.TypeFor[M]()), "")
	return protomsg.Reads[M](key)
}

// messageOf returns the message of a call, which must be an M.
func messageOf[M any](c *Call) (M, error) {
	message := c.Message()
	m, ok := message.(M)
	switch {
	case ok:
		return m, nil
	case message == nil:
		return m, core.ErrNoKey
	default:
		return m, fmt.Errorf("the message of %s is a %T, not a %v: choose the methods by ByMethod", c.FullMethod(), message, reflect.TypeFor[M]())
	}
}
