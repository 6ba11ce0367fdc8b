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
// # Idempotent calls
//
// A client whose connection broke does not know whether its call took effect. It
// sends the call again, with the same idempotency-key in the metadata, and
// IdempotentUnaryServerInterceptor gives it the first answer:
//
//	paid := grpclock.ByMethod(map[string]grpclock.KeyFunc{
//		pb.Bank_Transfer_FullMethodName: core.Join(grpclock.ContextValue(userKey{}), grpclock.IdempotencyKey()),
//	})
//	grpc.NewServer(grpc.ChainUnaryInterceptor(
//		recovery, auth, grpclock.IdempotentUnaryServerInterceptor(locks, paid), grpclock.UnaryServerInterceptor(locks, key)))
//
// The key is that of a user, as above, since clients choose the other part of it;
// without the user, one client is given the answer of another. What the user must
// have a right to is found out in front of the interceptor, also for a copy.
//
// The first call runs under a lock of its own; one behind it, as here, is taken
// only by calls that run. A copy that comes meanwhile is refused with ABORTED, or
// with core.WithWait waits for the answer. The answer is stored in Redis, in the
// same step that frees the lock, before the message and the status are sent, and is
// kept as long as core.WithRetention says. If it could not be stored, it is sent all
// the same; the observer hears of it, and copies are refused with
// OUTCOME_UNKNOWN.
//
// Stored are the message, or the status with its details, and the metadata that
// was set as header and trailer behind the interceptor; an early grpc.SendHeader is
// sent at once. A copy gets all of it byte for byte, but for the order of a map's
// entries, which protobuf leaves open, and "idempotent-replayed: true" in the
// header. Not replayed is metadata that belongs to one exchange, such as
// set-cookie, date, x-request-id and what begins with grpc-, nor that of
// interceptors outside.
//
// Answers are stored that a copy of the call would meet again, see WithStored:
// UNAVAILABLE or a panic frees the key, and a copy runs. A handler that knows
// better says so:
//
//	attempt, _ := grpclock.AttemptFromContext(ctx)
//	attempt.Decide(core.Uncertain) // the call to the payment provider timed out
//
// A handler that panics has returned no status. If it has decided core.Uncertain or
// core.StoreAnswer before, copies are refused with OUTCOME_UNKNOWN.
//
// A process that dies in the middle leaves a call of which nobody knows whether it
// took effect. Copies are refused with OUTCOME_UNKNOWN, until an operator frees the
// key, for which core.Locker.Resolve takes core.EndpointKey("", fullMethod, key); or
// they run, see core.WithInterrupted.
//
// An answer that cannot be given again is done all the same: copies are refused
// with COMPLETED_UNREPLAYABLE, and never run. That is one over core.WithMaxRecord,
// one that is no proto.Message, and one that was stored by another build, if its
// message has a type that this program does not have, or its method does not return.
//
// The retry interceptors of clients, and the retry policy of gRPC itself, send the
// metadata again, and so the same key: an interceptor that makes the key belongs
// outside of one that retries. What gRPC sends again by itself because no server
// has seen it (transparent retry) is no copy. ABORTED comes with a RetryInfo, and
// may be tried again; OUTCOME_UNKNOWN, MISMATCH and COMPLETED_UNREPLAYABLE will be
// the same.
//
// Streams are not covered: an answer in pieces is not stored. A handler finds
// another transport stream in its context than gRPC's own, so that
// grpc.SetSendCompressor and grpc.ClientSupportedCompressors do not work behind the
// interceptor. They do in front of it.
//
// What holds: for a key, while its record is kept, there is at most one stored
// answer, and all copies get that one. It is not exactly once. The effect and
// the storing of the answer take place in two systems, and between them a process
// can die; a record can be lost with its Redis; a call that lost its lease may still
// run while another one does. Where a second effect must be impossible, hand the key
// on to the system that has the effect, or make it unique in its database.
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
// limit, idempotency, lock, handler. Whatever can refuse a call refuses it before it has the
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
// once. core.WithFencing on the inner one needs it on the outer one: see
// core.ErrNoFence. With different keys they take one after the other, from the outside
// inwards, and in streams too; two calls that take them in different orders
// would wait for each other until their waits are over. Also takes several keys
// at once without that. Interceptors know of each other through the context:
// one in between that makes a new one parts them.
//
// To shut down, call GracefulStop before the Locker's Close: a Locker that is
// closed first refuses the calls that the server still accepts.
package grpclock
