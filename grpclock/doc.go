// Package grpclock runs the calls of gRPC servers under a lock in Redis: those
// with the same key run one at a time, in all processes of a service.
//
//	locks := core.Must(core.New(rdb))
//	key := grpclock.ByMethod(map[string]grpclock.KeyFunc{
//		pb.Bank_Transfer_FullMethodName: grpclock.Field[*pb.TransferRequest]("account.id"),
//		pb.Bank_Deposit_FullMethodName:  grpclock.Field[*pb.DepositRequest]("account.id"), // a stream
//	})
//
//	grpc.NewServer(
//		grpc.ChainUnaryInterceptor(recovery, auth, grpclock.UnaryServerInterceptor(locks, key)),
//		grpc.ChainStreamInterceptor(recoveryStream, authStream, grpclock.StreamServerInterceptor(locks, key)),
//	)
//
// # What happens to a call
//
// The key is read from the call, the lock is taken in Redis, the handler runs,
// and the lock is freed when it returns. A call that does not get its lock is
// answered, and its handler does not run: ABORTED where another call holds the
// lock, UNAVAILABLE where Redis cannot be asked, INVALID_ARGUMENT where the call
// has no usable key. See StatusOf for the answers and WithErrorHandler for your
// own.
//
// The handler's context is cancelled if the lock is lost while it runs;
// context.Cause says why. Its answer stands as it is. FromContext gives it the
// lease.
//
// # Where keys come from
//
// Whoever chooses the key chooses whom to hold up. Take it from the
// authenticated user (ContextValue, ContextValueAs, Peer with mutual TLS) or
// from the resource in the message that the user was found to have a right to
// (Field, Message), and put the lock behind the interceptors that find out.
// Metadata alone lets any client lock the key of any other.
//
// A key is the whole name of the lock: account 42 and user 42 are the same one.
// core.Named keeps them apart:
//
//	core.Named("account", grpclock.Field[*pb.TransferRequest]("account.id"))
//
// Two methods that use the same name and key exclude each other. What is read
// from a call as a key has at most 512 bytes and no control characters.
//
// An idempotency-key is chosen by the client, and another client may choose the
// same. Join it with who the client is:
//
//	core.Join(grpclock.ContextValue(userKey{}), grpclock.IdempotencyKey())
//
// An interceptor sees all methods of its server, those of health checks and
// reflection too. ByMethod locks some of them, and leaves the others alone.
// Without it, a key function that reads one type of message refuses the methods
// that have another one.
//
// # Streams
//
// The lock of a stream is held until its handler ends. If the key needs no
// message (Metadata, Peer, Method, ContextValue), the lock is taken before the
// handler runs. Else it is taken when the handler receives the first message:
//
//   - In a stream from the server, generated code receives that message before
//     it runs the handler. Only interceptors between the lock and the handler
//     come before it.
//   - In a stream from the client, or in both directions, the handler receives
//     it. What it does before that is not under the lock, so nothing must happen
//     there. To send a message or a header, or to return nil, is refused: the
//     stream ends with INTERNAL. Headers that are set (SetHeader) are kept back
//     until the lock is there; if they cannot be sent, the receiving says so.
//   - When the lock is refused, that is what the receiving returns, and what the
//     client gets, whatever the handler returns. Nothing can be sent any more.
//   - A stream that ends without a message is refused for want of a key.
//
// The context of the stream is the same one all the time. It carries the lease
// from the first message on, and is cancelled when the lease is lost, also where
// the handler took it before. Trailers are not held back, nor are headers set by
// grpc.SetHeader or grpc.SendHeader, which go past the stream.
//
// A key function may be called twice for a stream, see Call.Message.
//
// # Where to put it
//
// From the outside inwards: recover, log, authentication, validation, rate
// limit, lock, handler. Whatever can refuse a call refuses it before it has the
// lock. Stats handlers, such as that of otelgrpc, stand around all interceptors
// and see the refused calls too. Compression lies below them, and CORS is a
// matter of the proxy that speaks gRPC-Web. A recovery outside or inside the
// lock is right either way: the lock is freed when a panic passes through.
//
// A timeout interceptor that runs the handler in another goroutine, and answers
// while it still runs, belongs outside: there the lock is held until the handler
// has returned. Inside, the lock is freed with the answer. A deadline in the
// context, which the handler heeds by itself, may be set anywhere.
//
// The RegisterXHandlerServer functions of grpc-gateway call the service past all
// interceptors, and so without a lock. RegisterXHandlerFromEndpoint and
// RegisterXHandler go through the server.
//
// # What to know
//
// The lock ends with the handler, not with its client: when that has gone, the
// handler's context is cancelled as always, and the lock is held until the
// handler returns. A unary client that has its answer finds the lock free; a
// client that has read all of a stream from the server can still find it held
// for a moment until the handler returns, which a short core.WithWait hides.
//
// Two interceptors with the same key on one call take one lock and free it
// once. With different keys they take one after the other, from the outside
// inwards, and in streams too; two calls that take them in different orders
// would wait for each other until their waits are over. Also takes several keys
// at once without that. Interceptors know of each other through the context:
// one in between that makes a new one parts them.
//
// To shut down, call GracefulStop before the Locker's Close: a Locker that is
// closed first refuses the calls that the server still accepts.
package grpclock
