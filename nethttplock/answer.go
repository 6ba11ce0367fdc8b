package nethttplock

import (
	"net/http"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// NewAnswer returns an answer for core.Answered, with which an operator ends the unknown outcome of
// a request, on a route of any HTTP framework. Copies of the request get the answer as if a handler
// had given it: headers that an Idempotent does not replay are left out, without an error. replayed
// are the names that the route has in core.WithReplayedHeaders. The caller may change header and
// body afterwards.
//
// The error says which argument is wrong: a status that is not of 200 to 999, a body with a
// status that has none, or a name in replayed that is never replayed, such as Set-Cookie.
func NewAnswer(status int, header http.Header, body []byte, replayed ...string) (core.Answer, error) {
	return adapter.NewHTTPAnswer(self, adapter.HTTPAnswer{Status: status, Header: header, Body: body}, replayed...)
}
