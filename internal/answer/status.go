package answer

import "net/http"

// Storable reports whether an answer with the status is stored by default: copies of the
// request get it. Otherwise the answer frees the key, or it is Unknown.
//
// An unknown status counts as the first one of its class (RFC 9110, section 15).
func Storable(status int) bool {
	return 200 <= status && status < 500 && status != statusClientClosedRequest && !frees(status)
}

// Unknown reports whether an answer with the status leaves it unknown whether the request
// took effect. That is each status that says neither what became of the request nor that
// nothing did: most 5xx, all above them, which count as 5xx, and 499, with which a request
// ends whose client had disconnected.
func Unknown(status int) bool { return !Storable(status) && !frees(status) }

// statusClientClosedRequest is in wide use, but in no standard.
const statusClientClosedRequest = 499

// frees reports whether an answer with the status says that the request was not executed, and
// that another attempt may end in another way.
func frees(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, // other credentials or rights may be accepted
		http.StatusRequestTimeout,              // the request had not arrived
		http.StatusConflict, http.StatusLocked, // another request was in the way
		http.StatusTooEarly, http.StatusTooManyRequests, // the same request is accepted later
		http.StatusNotImplemented,                // no code for it, so nothing was executed
		http.StatusServiceUnavailable,            // a server sends it for requests that it does not begin
		http.StatusNetworkAuthenticationRequired: // a network in between answered; the server got no request
		return true
	}
	return false
}
