// Package locktest gives tests a Locker on an embedded Redis. A test can produce each state
// that a handler must handle: another process holds the key, the lease is lost, Redis is
// unavailable, or callers wait in the queue.
//
// Give the Locker to the code under test, and hold the key that the code locks:
//
//	func TestTransferWhileBusy(t *testing.T) {
//		locks := locktest.New(t)
//		key := nethttplock.PathValue("id").Named("account")
//		handler := nethttplock.Middleware(locks.Locker, key)(transfer)
//
//		r := httptest.NewRequestWithContext(t.Context(), "POST", "/accounts/42/transfer", nil)
//		r.SetPathValue("id", "42") // what the router would do
//		release := locktest.HoldFor(locks, key, r)
//		defer release()
//
//		w := httptest.NewRecorder()
//		handler.ServeHTTP(w, r)
//		if w.Code != http.StatusConflict {
//			t.Fatalf("got %d while another process holds the account", w.Code)
//		}
//	}
//
// Each New has its own Redis, in memory and without a port. Nothing needs to be installed,
// and tests may run in parallel. The Redis and the Locker end with the test.
//
// # Attempts
//
// On a route of Idempotent, a copy of a request gets what the attempt of the first one left.
// Process starts another process. Send the first request there, with a handler that ends
// the attempt as the test needs it:
//
//	locks := locktest.New(t)
//	elsewhere := locks.Process()
//	first := nethttplock.Idempotent(elsewhere.Locker, key)(handler)
//	route := nethttplock.Idempotent(locks.Locker, key)(pay) // the code under test
//
//	first.ServeHTTP(httptest.NewRecorder(), newRequest())
//	route.ServeHTTP(w, newRequest()) // a copy of the first request
//
// What handler does decides what the copy gets:
//
//   - While handler blocks, the attempt runs elsewhere. The copy gets 409 "busy", or waits
//     for the answer with core.WithWait.
//   - handler answers with a status that is stored: the copy gets the answer. In a bubble,
//     sleep for core.WithRetention and it runs.
//   - handler panics, or decides core.EndUnknown: the outcome is unknown, and the copy gets
//     409 "outcome_unknown".
//   - elsewhere.Kill while handler blocks, as in a crash: the copy gets 409 "busy". In a
//     bubble, sleep for core.WithTTL and it gets 409 "outcome_unknown".
//
// Both must have the same method, path and body. Without a framework, call Begin, Commit and
// Unknown on the Locker of the Process.
//
// # Without sleeping
//
// AwaitWaiting returns when the requests of the test wait in the queue. To test the order of
// the queue, send request n+1 when n requests wait.
//
// # Time
//
// In a bubble of testing/synctest, time.Sleep advances the clock of the Locker and the clock
// of Redis together. TTLs, renewals and waits then take no real time, and end exactly when
// they should:
//
//	synctest.Test(t, func(t *testing.T) {
//		locks := locktest.New(t, core.WithRenewal(false))
//		lease, _ := locks.Lock(t.Context(), "account:42")
//		time.Sleep(10 * time.Second)
//		// context.Cause(lease.Context()) is core.ErrLost
//	})
//
// Call New inside the bubble, with the t of the bubble. Real network
// connections stop the clock of a bubble: call the handler with an
// httptest.ResponseRecorder instead of a server.
//
// # Limits
//
// The embedded Redis is miniredis, which is not Redis. It suits tests of a handler's control
// flow, status codes and timing. It has no memory limit, no failover, no cluster and no slow
// network.
package locktest
