package grpclock

import "github.com/reqlock/reqlock/adapter/protomsg"

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
	self.Require(get != nil, "Message needs a function")
	return protomsg.Message(calls(), get)
}
