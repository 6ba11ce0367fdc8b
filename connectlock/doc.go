// Package connectlock runs the calls of Connect handlers (connectrpc.com/connect) under a lock in
// Redis. Calls with the same key run one at a time, in all processes of a service, whatever their
// protocol is: Connect, gRPC or gRPC-Web.
//
//	locks := core.Must(core.New(rdb))
//	key := connectlock.ByMethod(map[string]connectlock.Key{
//		bankv1connect.BankTransferProcedure: connectlock.Field[*bankv1.TransferRequest]("account.id").Named("account"),
//		bankv1connect.BankDepositProcedure:  connectlock.Field[*bankv1.DepositRequest]("account.id").Named("account"), // a stream
//	})
//	path, handler := bankv1connect.NewBankHandler(bank,
//		connect.WithInterceptors(auth, connectlock.Interceptor(locks, key)))
//
// The interceptor reads the key from the call, takes the lock, runs the handler, and frees the lock
// when the handler returns. If a call does not get its lock, its handler does not run, and the
// interceptor answers: ABORTED if another call holds the lock, UNAVAILABLE if Redis is unavailable,
// INVALID_ARGUMENT if the call has no usable key. [Errors] has the whole table. On the Connect
// protocol, the HTTP status follows from the code: 409, 503 and 400. If the lock is lost while the
// handler runs, its context is cancelled with the cause core.ErrLost.
//
// # Keys
//
// Take the key from the authenticated user (ContextValue, ContextValueAs), or from a resource in the
// message that the user is allowed to use (Field, Message). With a key from a header alone, any client
// can lock the key of any other client. The key is the whole name of the lock: Key.Named keeps account
// 42 and user 42 apart.
//
// A handler may have more methods than the key fits. ByMethod locks some of them. Without ByMethod, a
// key that reads one type of message refuses the methods that have another type. See [keys].
//
// # Rules in the .proto file
//
// Methods can declare their locks and their idempotency in their .proto file: see Declared, and
// [annotations].
//
// # Where to put it
//
// Every interceptor that can refuse a call, authentication first, belongs before the lock. So does a
// timeout that may answer while the handler still runs. A connect.WithRequestGate runs before all
// interceptors. See [the order of interceptors].
//
// # Idempotent calls
//
// A client that got no answer sends its call again, with the same Idempotency-Key in the header.
// IdempotentInterceptor then repeats the first answer:
//
//	paid := connectlock.ByMethod(map[string]connectlock.Key{
//		bankv1connect.BankTransferProcedure: core.Join(connectlock.ContextValue(userKey{}), connectlock.IdempotencyKey()),
//	})
//	connect.WithInterceptors(auth, connectlock.IdempotentInterceptor(locks, paid), connectlock.Interceptor(locks, key))
//
// Join the key with the user: without the user, a client could get the answer of another. This is not
// "exactly once": after a panic, INTERNAL or a crash the outcome is unknown, and copies are refused.
// Streams are not idempotent. See [idempotent endpoints] and [unknown outcomes].
//
// A copy gets the message, or the error with its code, details and metadata, and the header and the
// trailer that were set behind the interceptor, with the header Idempotent-Replayed: true. It may come
// on another protocol. Interceptors outside find the message of a replay by Any of its response, which
// is a connect.AnyResponse but no connect.Response: its type is not known before the handler has run.
//
// # Streams
//
// The lock of a stream is held until its handler ends. If the key needs no message (Header, Peer,
// Procedure, ContextValue), the lock is taken before the handler runs. Otherwise the lock is taken when
// the handler receives the first message:
//
//   - In a server stream, Connect receives that message before the handler runs.
//   - In a client stream or a bidirectional stream, code before the first Receive does not run under
//     the lock, so it must have no effect. If it sends a message, or returns nil, the stream ends with
//     INTERNAL. A header that it sets is sent, also with a refusal.
//   - If the lock is refused, Receive returns the refusal, and the client gets it, whatever the handler
//     returns.
//   - A stream that ends without a message is refused, unless a core.First has another key for it.
//
// The context of the stream stays the same, and carries the lease from the first message on. A key may
// be read twice: see Call.Message. If an outer interceptor of this package waits for the first message,
// the inner one waits for it too, so that locks are taken from the outside inwards.
//
// # What to know
//
// The lock ends with the handler, not with its client. Code that locks through a second Locker waits
// for its own call: see "Deadlocks" in the comment of package core. To shut down, call Shutdown of the
// http.Server before the Locker's Close.
//
// [Errors]: https://github.com/reqlock/reqlock/blob/main/docs/errors.md#all-refusals
// [annotations]: https://github.com/reqlock/reqlock/blob/main/docs/annotations.md
// [keys]: https://github.com/reqlock/reqlock/blob/main/docs/keys.md
// [the order of interceptors]: https://github.com/reqlock/reqlock/blob/main/docs/middleware-order.md#grpc
// [idempotent endpoints]: https://github.com/reqlock/reqlock/blob/main/docs/idempotency.md
// [unknown outcomes]: https://github.com/reqlock/reqlock/blob/main/docs/unknown-outcomes.md
package connectlock
