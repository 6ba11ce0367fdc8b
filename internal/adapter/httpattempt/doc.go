// Package httpattempt is what Idempotent does to a request on every HTTP
// framework: it begins the attempt, lets the handler run on a Recorder, ends the
// attempt by what was answered, and only then sends the answer; or it sends the
// answer of the attempt that was done before.
//
// An adapter makes an Endpoint when a route is registered. For each request it
// calls Begin, and then Replay or Run on the Exchange that it gets:
//
//	exchange, err := endpoint.Begin(r, r, route)
//	switch {
//	case errors.Is(err, core.ErrSkip): // runs as without Idempotent
//	case err != nil:                   // is refused
//	case exchange.Replayed():
//		exchange.Replay(w)
//	default:
//		exchange.Run(w, r, func(w *httpattempt.Recorder, r *http.Request) {
//			next.ServeHTTP(w, r)
//		})
//	}
//
// The package knows net/http and no framework.
package httpattempt
