package nethttplock

import (
	"net/http"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/adapter/httpkey"
	"github.com/reqlock/reqlock/internal/adapter/registration"
)

// SharedReads lets the GET and HEAD requests of a group share the key. A request with another
// method locks the key alone. So reads run beside each other, and a write runs alone:
//
//	nethttplock.Middleware(locks, nethttplock.SharedReads(core.Named("account", nethttplock.PathValue("id"))), core.WithWait(2*time.Second))
//
// A write waits for the reads that run, and reads that come later wait for the write. A write
// that may not wait could be refused for ever, because there is always a read. So the
// middleware panics without core.WithWait, or with core.WithWait(0). If SharedReads is inside
// another key function, as in core.Named, the middleware does not see it, and refuses each
// request instead. See core.SharedWhen for another condition.
//
// Use it only where GET and HEAD change nothing. A nil key panics.
func SharedReads[K string | core.RequestKey](key func(*http.Request) (K, error)) KeyFunc {
	registration.Must(self, key != nil, "SharedReads needs a key function")
	return httpkey.SharedReads(func(r *http.Request) string { return r.Method }, core.Func(key))
}
