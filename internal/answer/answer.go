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
