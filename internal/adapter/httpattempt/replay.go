package httpattempt

import (
	"maps"
	"net/http"

	"github.com/reqlock/reqlock/internal/adapter/record"
)

// Replay sends the answer of the attempt that was done before. Its headers take
// the place of those of the same name, and of those that are of an answer alone;
// all others that w has already are the new request's.
func (x *Exchange) Replay(w http.ResponseWriter) {
	header := w.Header()
	maps.DeleteFunc(header, func(name string, _ []string) bool { return record.OfAnswer(name) })
	maps.Copy(header, x.answer.Header)
	header.Set("Idempotent-Replayed", "true")
	if _, replayed := x.answer.Header["Cache-Control"]; !replayed {
		header.Set("Cache-Control", "no-store")
	}
	w.WriteHeader(x.answer.Status)
	if len(x.answer.Body) > 0 {
		// A client that does not read its answer cannot be told.
		_, _ = w.Write(x.answer.Body)
	}
}
