// Package httpattempt runs a request of an idempotent HTTP route, for any framework. It
// begins the attempt, runs the handler on a Recorder, ends the attempt by the handler's
// answer, and then sends the answer. If an earlier attempt has stored an answer, it sends
// that answer.
//
// An adapter makes an Endpoint when a route is registered. For each request it calls Begin,
// and then Replay or Run on the Exchange that Begin returns:
//
//	exchange, err := endpoint.Begin(r, r, pattern, route)
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
// The package depends on net/http and on no framework.
package httpattempt
