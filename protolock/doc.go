// Package protolock runs the calls of gRPC servers under the locks that their .proto files declare:
//
//	rpc Transfer(TransferRequest) returns (TransferReply) {
//	  option (reqlock.v1.method) = {
//	    lock { name: "account" key { field: "account.id" } wait { seconds: 2 } }
//	    idempotent { key { source: "user" } key { field: "request_id" } optional: true }
//	  };
//	}
//
// New reads these rules, the options of reqlock/v1/annotations.proto. The methods of Rules make the
// interceptors:
//
//	locks := core.Must(core.New(rdb))
//	rules := protolock.Must(protolock.New([]*grpc.ServiceDesc{&pb.Bank_ServiceDesc},
//		protolock.Source("user", grpclock.ContextValue(userKey{}))))
//	grpc.NewServer(append(options, rules.ServerOptions(locks)...)...)
//
// The interceptors are those of package grpclock, with the keys and the options that a method
// declares. So a rule and code with the same key exclude each other. What package grpclock says of
// streams, of refusals, of idempotent calls and of the order of interceptors holds here, too.
//
// [Rules in the .proto file] has all rules and their mistakes.
//
// [Rules in the .proto file]: https://github.com/reqlock/reqlock/blob/main/docs/annotations.md
package protolock
