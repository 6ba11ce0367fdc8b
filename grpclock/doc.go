// Package grpclock runs the calls of gRPC servers under a lock in Redis. Calls with the
// same key run one at a time, in all processes of a service.
//
//	locks := core.Must(core.New(rdb))
//	key := grpclock.ByMethod(map[string]grpclock.Key{
//		pb.Bank_Transfer_FullMethodName: grpclock.Field[*pb.TransferRequest]("account.id").Named("account"),
//		pb.Bank_Deposit_FullMethodName:  grpclock.Field[*pb.DepositRequest]("account.id").Named("account"), // a stream
//	})
//
//	options := []grpc.ServerOption{
//		grpc.ChainUnaryInterceptor(recovery, auth),
//		grpc.ChainStreamInterceptor(recoveryStream, authStream),
//	}
//	grpc.NewServer(append(options, grpclock.ServerOptions(locks, key)...)...)
//
// With only one of the two interceptors (UnaryServerInterceptor, StreamServerInterceptor),
// methods of the other kind run without a lock. ServerOptions makes both. [Getting started]
// has a whole program.
//
// The interceptor reads the key from the call, takes the lock, runs the handler, and frees
// the lock when the handler returns. If a call does not get its lock, its handler does not
// run, and the interceptor answers: ABORTED if another call holds the lock, UNAVAILABLE if
// Redis is unavailable, INVALID_ARGUMENT if the call has no usable key. [Errors] has the
// whole table. A client's retry policy waits for the time that the answer names, and ends if
// a retry is useless. If the lock is lost while the handler runs, its context is cancelled with
// the cause core.ErrLost.
//
// # Keys
//
// Take the key from the authenticated user (ContextValue, ContextValueAs, Peer with mutual
// TLS), or from a resource in the message that the user is allowed to use (Field, Message).
// With a key from metadata alone, any client can lock the key of any other client. The key
// is the whole name of the lock: Key.Named keeps account 42 and user 42 apart.
//
// An interceptor gets the calls of all methods, including health checks. ByMethod locks
// some of them. Without ByMethod, a key that reads one type of message refuses the
// methods that have another type. See [keys].
//
// # Rules in the .proto file
//
// Methods can declare their locks and their idempotency in their .proto file, and package protolock
// makes the interceptors of these rules: see [annotations].
//
// # Where to put it
//
// Every interceptor that can refuse a call, authentication first, belongs before the lock.
// So does a timeout that may answer while the handler still runs. RegisterXHandlerServer of
// grpc-gateway calls the service without a lock. See [the order of interceptors].
//
// # Idempotent calls
//
// A client that got no answer sends its call again, with the same idempotency-key in the
// metadata. IdempotentUnaryServerInterceptor then repeats the first answer:
//
//	paid := grpclock.ByMethod(map[string]grpclock.Key{
//		pb.Bank_Transfer_FullMethodName: core.Join(grpclock.ContextValue(userKey{}), grpclock.IdempotencyKey()),
//	})
//	grpc.NewServer(grpc.ChainUnaryInterceptor(
//		recovery, auth, grpclock.IdempotentUnaryServerInterceptor(locks, paid), grpclock.UnaryServerInterceptor(locks, key)))
//
// Join the key with the user: without the user, a client could get the answer of another.
// This is not "exactly once": after a panic, INTERNAL or a crash the outcome is unknown,
// and copies are refused. Streams are not idempotent. See [idempotent endpoints],
// [copies on gRPC] and [unknown outcomes].
//
// # Streams
//
// The lock of a stream is held until its handler ends. If the key needs no message
// (Metadata, Peer, Method, ContextValue), the lock is taken before the handler runs.
// Otherwise the lock is taken when the handler receives the first message:
//
//   - In a server stream, generated code receives that message before the handler runs.
//   - In a client stream or a bidirectional stream, code before the first RecvMsg does not
//     run under the lock, so it must have no effect. If it sends a message or a header, or
//     returns nil, the stream ends with INTERNAL.
//   - If the lock is refused, RecvMsg returns the refusal, and the client gets it, whatever
//     the handler returns.
//   - A stream that ends without a message is refused, since it has no key.
//
// The context of the stream stays the same, and carries the lease from the first message
// on. A key may be read twice: see Call.Message.
//
// # What to know
//
// The lock ends with the handler, not with its client. Code that locks through a second
// Locker waits for its own call: see "Deadlocks" in the comment of package core. To shut
// down, call GracefulStop before the Locker's Close.
//
// [Getting started]: https://github.com/reqlock/reqlock/blob/main/docs/getting-started.md#grpc
// [Errors]: https://github.com/reqlock/reqlock/blob/main/docs/errors.md#all-refusals
// [annotations]: https://github.com/reqlock/reqlock/blob/main/docs/annotations.md
// [keys]: https://github.com/reqlock/reqlock/blob/main/docs/keys.md
// [the order of interceptors]: https://github.com/reqlock/reqlock/blob/main/docs/middleware-order.md#grpc
// [idempotent endpoints]: https://github.com/reqlock/reqlock/blob/main/docs/idempotency.md
// [copies on gRPC]: https://github.com/reqlock/reqlock/blob/main/docs/replays.md#grpc
// [unknown outcomes]: https://github.com/reqlock/reqlock/blob/main/docs/unknown-outcomes.md
package grpclock
