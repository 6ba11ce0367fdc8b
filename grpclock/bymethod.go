package grpclock

import "github.com/reqlock/reqlock/adapter/protomsg"

// ByMethod chooses the key by the method of the call. Methods that are not
// in keys run without a lock. Method names have the form of gRPC,
// "/pkg.Service/Method"; generated code has constants for them:
//
//	grpclock.ByMethod(map[string]grpclock.Key{
//		pb.Bank_Transfer_FullMethodName: grpclock.Field[*pb.TransferRequest]("account.id").Named("account"),
//	})
//
// The key of a method may be several keys: see core.All.
//
// Unary calls run only through a UnaryServerInterceptor, and streams only through a
// StreamServerInterceptor. ServerOptions makes both. If one of them is missing, its
// methods run without a lock. The observer receives a Warned event for each such method,
// but not before the first call of the other interceptor.
//
// ByMethod panics if the map is empty, or has a zero Key or an unknown method, and if a Field or
// Message reads another type than the method receives. Known are the methods of all protobuf
// services that are linked into the program (protoregistry.GlobalFiles), since no server has its
// services yet. For a service without protobuf, see core.Switch.
func ByMethod(keys map[string]Key) Key {
	key, err := protomsg.ByMethod(calls(), keys)
	if err != nil {
		panic(self.Errorf("%w", err))
	}
	return key
}
