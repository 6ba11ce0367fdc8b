// Package adapter is for authors of adapters, which run the requests of a framework under locks of
// core, and once for their key. Programs need only core and an adapter. The guide
// docs/writing-an-adapter.md builds one.
//
// # Locks
//
// NewLock checks the arguments of a middleware when a program registers a route. Lock.Enter takes the
// locks of a request. Its Entry says what becomes of the request:
//
//	lock := adapter.Must(adapter.NewLock(self, "Middleware", l, key, opts))
//	return func(w http.ResponseWriter, r *http.Request) {
//		entry, err := lock.Enter(r.Context(), r)
//		defer entry.Leave()
//		if err != nil {
//			entry.Refuse(w, err)
//			return
//		}
//		next.ServeHTTP(w, entry.Request(r))
//		entry.Returned()
//	}
//
// # Idempotent requests
//
// For HTTP, NewIdempotentHTTP does the same with the Accessors of the framework. IdempotentHTTP.Begin
// returns an Exchange: it replays the stored answer, or runs the handler on a Recorder, ends the
// attempt by the handler's answer, and then sends the answer. For RPC it is NewIdempotentRPC, with an
// RPC and an RPCExchange. What decides how an attempt ends is here, so all adapters agree: the
// handler's decision (core.Attempt.Decide), a refusal inside, core.WithUnknown and core.WithStored.
//
// # Keys
//
// Most keys of an adapter are core.KeyOf(read).Describe(Call(function, argument), part), where read
// ends in Text, Only or another text of this package. A framework on net/http has most of its keys
// from nethttplock, by Convert. PathKey and BodyKey make the others.
//
// # Refusals
//
// RefusalOf knows each error, Problem is its document and WriteRefusal the whole answer. A program's
// own error handler writes on a Guard. A framework whose handlers return errors says which one it
// returns by Entry.SetReturned.
//
// A setting that needs a type of the framework is a Setting. All other options are core's.
package adapter
