package adapter

import (
	"maps"
	"net/http"

	"github.com/reqlock/reqlock/internal/answer"
)

// Replay sends the stored answer of an earlier attempt. Its headers replace the headers of w with the same names,
// and all headers of w that describe an answer. Other headers of w stay: they belong to the
// new request.
func (x *Exchange) Replay(w http.ResponseWriter) {
	defer x.leave(nil)
	header := w.Header()
	maps.DeleteFunc(header, func(name string, _ []string) bool { return answer.OfAnswer(name) })
	maps.Copy(header, x.answer.Header)
	header.Set("Idempotent-Replayed", "true")
	if _, replayed := x.answer.Header["Cache-Control"]; !replayed {
		header.Set("Cache-Control", "no-store")
	}
	w.WriteHeader(x.answer.Status)
	if len(x.answer.Body) > 0 {
		// An error means that the client has disconnected.
		_, _ = w.Write(x.answer.Body)
	}
}
