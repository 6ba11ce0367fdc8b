package record

import "net/http"

// Storable reports whether an answer with the status is kept, and so is the
// answer to every retry: a success, a redirection, or a refusal that a retry of
// the same request would meet again.
//
// Not kept is what is no final answer (1xx), what says that the server failed
// (5xx), and a refusal that can be another one the next time: for want of
// credentials or rights (401, 403), for time (408, 425), for the state of what
// was asked for (409, 423), for the number of requests (429), or because the
// client had gone (499, which is in no standard).
func Storable(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusConflict,
		http.StatusLocked, http.StatusTooEarly, http.StatusTooManyRequests,
		499:
		return false
	}
	return 200 <= status && status < 500
}
