package record

import "net/http"

// Storable reports whether an answer with the status is stored for every retry: a success,
// a redirection, or a refusal that a retry of the same request would get again.
//
// Other answers are not stored: an answer that is not final (1xx), a failure of the server
// (5xx), and a refusal that may change: because of credentials or rights (401, 403), of
// time (408, 425), of the state of the resource (409, 423), of the number of requests
// (429), or because the client had disconnected (499, which is not in a standard).
func Storable(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusConflict,
		http.StatusLocked, http.StatusTooEarly, http.StatusTooManyRequests,
		499:
		return false
	}
	return 200 <= status && status < 500
}

// Uncertain reports whether an answer with the status leaves it unknown whether the request
// took effect: a failure in the middle of a request (500), a failure of another service that
// the request was passed on to (502, 504), or the end of a request whose client had
// disconnected (499). A 503 is not among them: a server sends it for requests that it does
// not begin.
func Uncertain(status int) bool {
	switch status {
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout, 499:
		return true
	}
	return false
}
