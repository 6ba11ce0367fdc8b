// Package locktest gives tests a Locker on an embedded Redis, and puts the
// world around it into the states that a handler must bear: another process
// holds the key, the lease is lost, Redis is away, callers wait in line.
//
// Give the Locker to the code under test, and hold what it wants:
//
//	func TestTransferWhileBusy(t *testing.T) {
//		locks := locktest.New(t)
//		key := nethttplock.PathValue("id")
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
// Each New has a Redis of its own, in memory and without a port: nothing is
// installed, nothing is shared, and tests may run in parallel. All of it ends
// with the test.
//
// # Without sleeping
//
// AwaitWaiting returns when the requests that the test sent stand in line, so
// that the next step of the test finds them there. The order of a line is
// tested by sending request n+1 when n wait.
//
// # Time
//
// In a bubble of testing/synctest, time.Sleep moves the clock of the Locker and
// that of Redis together. TTLs, renewals and waits then take no time, and end
// to the nanosecond where they should:
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
// # What it does not show
//
// The embedded Redis is miniredis, which is not Redis. It is right for the flow
// of a handler, for status codes and for time. It knows no memory limit, no
// failover and no cluster, and has no network that could be slow.
package locktest
