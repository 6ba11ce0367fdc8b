// Package grpclock runs the calls of gRPC servers under a lock in Redis. Calls with
// the same key run one at a time, in all processes of a service.
//
//	locks := core.Must(core.New(rdb))
//	key := grpclock.ByMethod(map[string]grpclock.KeyFunc{
//		pb.Bank_Transfer_FullMethodName: core.Named("account", grpclock.Field[*pb.TransferRequest]("account.id")),
//		pb.Bank_Deposit_FullMethodName:  core.Named("account", grpclock.Field[*pb.DepositRequest]("account.id")), // a stream
//	})
//
//	options := []grpc.ServerOption{
//		grpc.ChainUnaryInterceptor(recovery, auth),
//		grpc.ChainStreamInterceptor(recoveryStream, authStream),
//	}
//	grpc.NewServer(append(options, grpclock.ServerOptions(locks, key)...)...)
//
// ServerOptions makes the interceptor for unary calls and the one for streams. With only one
// of the two (UnaryServerInterceptor, StreamServerInterceptor), methods of the other kind run
// without a lock.
//
// # What happens to a call
//
// The interceptor reads the key from the call, takes the lock in Redis, runs the
// handler, and frees the lock when the handler returns. If a call does not get its
// lock, its handler does not run, and the interceptor answers: ABORTED if another
// call holds the lock, UNAVAILABLE if Redis is unavailable, INVALID_ARGUMENT if the
// call has no usable key. See StatusOf for the answers and WithErrorHandler for your
// own.
//
// If the lock is lost while the handler runs, its context is cancelled, and
// context.Cause returns the reason. The handler's answer is sent unchanged.
// FromContext returns the lease.
//
// # Where keys come from
//
// A client that can choose the key can block the calls of others. Take the key from
// the authenticated user (ContextValue, ContextValueAs, Peer with mutual TLS), or
// from a resource in the message that the user is allowed to use (Field, Message).
// Put the lock behind the interceptors that check this. With a key from metadata
// alone, any client can lock the key of any other client.
//
// The key is the whole name of the lock: account 42 and user 42 have the same lock.
// core.Named keeps them apart:
//
//	core.Named("account", grpclock.Field[*pb.TransferRequest]("account.id"))
//
// Two methods with the same name and key exclude each other. A key that is read from
// a call has at most 512 bytes and no control characters.
//
// The client chooses the idempotency-key, and another client may choose the same.
// Join it with the user:
//
//	core.Join(grpclock.ContextValue(userKey{}), grpclock.IdempotencyKey())
//
// An interceptor gets the calls of all methods of its server, including health checks
// and reflection. ByMethod locks some of them and runs the others without a lock.
// Without ByMethod, a key function that reads one type of message refuses the methods
// that have another type.
//
// # Idempotent calls
//
// If its connection breaks, a client does not know whether the call took effect. It
// sends the call again, with the same idempotency-key in the metadata, and
// IdempotentUnaryServerInterceptor returns the first answer:
//
//	paid := grpclock.ByMethod(map[string]grpclock.KeyFunc{
//		pb.Bank_Transfer_FullMethodName: core.Join(grpclock.ContextValue(userKey{}), grpclock.IdempotencyKey()),
//	})
//	grpc.NewServer(grpc.ChainUnaryInterceptor(
//		recovery, auth, grpclock.IdempotentUnaryServerInterceptor(locks, paid), grpclock.UnaryServerInterceptor(locks, key)))
//
// The key contains the user, as above, since clients choose the other part: without
// the user, a client could get the answer of another client. Check the user's rights
// before the interceptor, so that they are checked for copies too.
//
// The first call runs under a lock of its own. A lock behind the interceptor, as
// here, is taken only by calls that run. A copy that arrives while the first call
// runs is refused with ABORTED, or waits for the answer with core.WithWait. The
// answer is stored in Redis, in the same step that frees the lock, before the message
// and the status are sent. It is kept for the time of core.WithRetention. If the
// answer cannot be stored, it is sent anyway, the observer gets an event, and copies
// are refused with OUTCOME_UNKNOWN.
//
// The interceptor stores the message, or the status with its details, and the
// metadata that was set as header and trailer behind it. An early grpc.SendHeader is
// sent at once. A copy gets the same bytes, with "idempotent-replayed: true" in the
// header. Exception: the order of a map's entries may differ, since protobuf does not
// define it. Metadata of one exchange is not replayed, such as set-cookie, date,
// x-request-id and names that begin with grpc-. Metadata of interceptors outside is
// not replayed either.
//
// The interceptor stores the answers that a copy would get again, see WithStored. A
// panic, and the codes CANCELED, UNKNOWN, DEADLINE_EXCEEDED, INTERNAL and DATA_LOSS,
// leave the outcome unknown, see WithUncertain: the call may have had its effect before
// it failed. Copies are then refused with OUTCOME_UNKNOWN. An error without a status is
// UNKNOWN. UNAVAILABLE frees the key, so that a copy runs. If all effects of a handler
// roll back when it fails, as in one database transaction, take FreeOnFailure. A handler
// can decide otherwise:
//
//	attempt, _ := grpclock.AttemptFromContext(ctx)
//	attempt.Decide(core.DropAnswer) // INTERNAL, but before the charge
//
// core.Uncertain leaves the outcome unknown for any code, and core.StoreAnswer stores the
// answer. The decision also counts before a panic; then there is no answer to store, and
// the outcome is unknown after core.StoreAnswer too.
//
// If a process dies during a call, the outcome of the call is unknown. Copies are
// refused with OUTCOME_UNKNOWN, until an operator says what became of the call:
//
//	key, err := grpclock.EndpointKey(pb.Bank_Transfer_FullMethodName, "ada", "8e03978e-40d5-43e8") // or the key of the log line
//	outcome, err := locks.Outcome(ctx, key)
//	// outcome.State is core.RequestUnknown: look for the transfer
//	err = locks.Resolve(ctx, key, core.Done(), outcome.Seen)
//
// After core.Forget() the next copy runs. After core.Done() copies are refused with
// COMPLETED_UNREPLAYABLE, and after core.Answered(record) they get the answer that Answer
// has made. With core.WithInterrupted copies can run instead.
//
// Some answers cannot be replayed. The call is complete anyway: copies are refused
// with COMPLETED_UNREPLAYABLE and never run. Such an answer is larger than
// core.WithMaxRecord, or is not a proto.Message. Or another build stored it, and this
// program does not have the type of its message, or the method does not return that
// type.
//
// The retry interceptors of clients, and the retry policy of gRPC, send the same
// metadata again, and so the same key: in a client, an interceptor that creates the
// key belongs outside one that retries. A transparent retry of gRPC is not a copy,
// since no server has processed the call. ABORTED has a RetryInfo, and the client may
// retry. A retry after OUTCOME_UNKNOWN, MISMATCH or COMPLETED_UNREPLAYABLE gets the
// same status.
//
// Streams are not idempotent: an answer in several messages is not stored. The
// handler's context contains a transport stream of the interceptor, not gRPC's own.
// So grpc.SetSendCompressor and grpc.ClientSupportedCompressors do not work behind
// the interceptor. They work before it.
//
// The guarantee: while the record of a key is kept, the key has at most one stored
// answer, and all copies get that answer. This is not "exactly once". The effect and
// the stored answer are in two systems, and a process can die between the two writes.
// A record can be lost with its Redis. A call that lost its lease may still run while
// another one runs. If a second effect must be impossible, pass the key to the system
// that has the effect, or make it unique in its database.
//
// # Streams
//
// The lock of a stream is held until its handler ends. If the key needs no message
// (Metadata, Peer, Method, ContextValue), the lock is taken before the handler runs.
// Otherwise the lock is taken when the handler receives the first message:
//
//   - In a server stream, generated code receives that message before it runs the
//     handler. Only interceptors between the lock and the handler run before that.
//   - In a client stream or a bidirectional stream, the handler receives that
//     message. Code before the first RecvMsg does not run under the lock, so it must
//     have no effect. If it sends a message or a header, or returns nil, the stream
//     ends with INTERNAL. Headers that are set before (SetHeader) are passed on when
//     the lock is taken; if that fails, RecvMsg returns the error.
//   - If the lock is refused, RecvMsg returns the refusal. The client gets the
//     refusal, whatever the handler returns. The handler cannot send any more.
//   - A stream that ends without a message is refused, since it has no key.
//
// The context of the stream does not change. It carries the lease from the first
// message on, and is cancelled when the lease is lost, also if the handler got the
// context before the first message. Trailers are not delayed. Neither are headers
// that are set by grpc.SetHeader or grpc.SendHeader, since these functions bypass the
// stream.
//
// A key function may be called twice for a stream, see Call.Message.
//
// # Where to put it
//
// From the outside inwards: recover, log, authentication, validation, rate limit,
// idempotency, lock, handler. Every interceptor that can refuse a call should stand
// before the lock. Stats handlers, such as that of otelgrpc, run around all
// interceptors and see the refused calls too. Compression runs below the
// interceptors, and the gRPC-Web proxy handles CORS. A recovery may stand outside or
// inside the lock: a panic that passes the lock frees it.
//
// A timeout interceptor that runs the handler in another goroutine, and may answer
// while the handler still runs, belongs outside: there the lock is held until the
// handler has returned. Inside, the lock is freed with the answer. A deadline in the
// context may be set anywhere, if the handler checks the context.
//
// The RegisterXHandlerServer functions of grpc-gateway call the service without
// interceptors, and so without a lock. RegisterXHandlerFromEndpoint and
// RegisterXHandler call the server, with its interceptors.
//
// # What to know
//
// The lock ends with the handler, not with its client: when the client disconnects,
// the handler's context is cancelled as always, and the lock is held until the
// handler returns. When a unary client has its answer, the lock is free. When a
// client has read a server stream to its end, the lock can still be held for a moment
// until the handler returns; a short core.WithWait covers that.
//
// Two interceptors with the same key on one call take one lock and free it once. If
// the inner one has core.WithFencing, the outer one needs it too: see
// core.ErrNoFence. Interceptors with different keys take their locks one after the
// other, from the outside inwards, also in streams. Two calls that take the same
// locks in different orders would wait for each other until their waits end. Also
// takes several keys at once and avoids that. Code that locks through a second Locker
// with the same Redis and prefix waits for its own request: see "Deadlocks" in the
// comment of package core. The inner interceptor finds the outer
// one's lease in the context. An interceptor in between that replaces the context by
// one without a parent hides that lease.
//
// To shut down, call GracefulStop before the Locker's Close: a Locker that is
// closed first refuses the calls that the server still accepts.
package grpclock
