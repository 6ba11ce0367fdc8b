// Package answer encodes the answer of a handler, which is stored for retries of an
// idempotent request. It defines which answers are stored (Storable), which of their headers
// (Filter), and in which format (Encode, Decode). For gRPC methods these are Metadata,
// EncodeReply and DecodeReply. A core.Answer holds an encoded one that an operator gives.
//
// Processes of other versions read a record after the process that wrote it has ended. So a
// record contains its version and ends in a checksum. A record that cannot be read completely
// is an error: it means that the handler has run, and must not run again.
package answer

import (
	"encoding/binary"
	"net/http"
	"slices"
)

// An Answer is the answer of an HTTP handler.
type Answer struct {
	Status int         // 200 to 999, as net/http can send it
	Header http.Header // the replayable fields: see Filter
	Body   []byte
}

// Encode appends the record of an answer to dst. Equal answers have equal records: names
// are sorted, and the values of a name stay in order. A name without values is stored, too:
// with it, net/http detects no Content-Type.
//
// A Status that net/http cannot send results in a record that Decode refuses.
//
// The content is the status, the number of names, each name with the number of its values
// and the values, and the body. Numbers are varints. A text is its length in bytes and its
// bytes. The body is the rest.
func Encode(dst []byte, a Answer) []byte {
	start := len(dst)
	dst = beginFrame(slices.Grow(dst, Len(a)), kindHTTP)
	dst = binary.AppendUvarint(dst, uint64(a.Status)) //nolint:gosec // a negative one is refused when it is read
	dst = appendHeader(dst, a.Header)
	dst = append(dst, a.Body...)
	return endFrame(dst, start)
}

// Len returns the length in bytes of the record of an answer.
func Len(a Answer) int { return frameLen + numberLen(a.Status) + headerLen(a.Header) + len(a.Body) }

// Decode reads a record that Encode wrote. It returns the complete answer, or ErrDamaged,
// ErrVersion or ErrKind. An answer has exactly one record: any other encoding of it is
// ErrDamaged.
//
// The Body shares its bytes with b. The Header is never nil.
func Decode(b []byte) (Answer, error) {
	content, err := contentOf(b, kindHTTP)
	if err != nil {
		return Answer{}, err
	}
	r := reader{rest: content}
	a := Answer{Status: r.status(), Header: r.header()}
	a.Body = r.bytes(uint64(len(r.rest)))
	if r.damaged {
		return Answer{}, ErrDamaged
	}
	return a, nil
}

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
