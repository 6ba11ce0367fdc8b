package record

import (
	"encoding/binary"
	"net/http"
	"slices"
)

// An Answer is what an HTTP handler answered.
type Answer struct {
	Status int         // 200 to 999, as net/http can send it
	Header http.Header // what of it may be replayed: see Filter
	Body   []byte
}

// Encode appends the record of an answer to dst. The same answer makes the
// same bytes: names are sorted, and the values of a name stay in order. A name
// without values is kept too, since net/http guesses no Content-Type where
// there is one without a value.
//
// A Status that net/http cannot send makes a record that Decode refuses.
//
// The content is the status, the number of names, for each name itself, the
// number of its values and the values, and then the body. Numbers are varints;
// a text is its length in bytes and its bytes; the body is all that is left.
func Encode(dst []byte, a Answer) []byte {
	start := len(dst)
	dst = open(slices.Grow(dst, frameLen+binary.MaxVarintLen16+headerLen(a.Header)+len(a.Body)), kindHTTP)
	dst = binary.AppendUvarint(dst, uint64(a.Status)) //nolint:gosec // a negative one is refused when it is read
	dst = appendHeader(dst, a.Header)
	dst = append(dst, a.Body...)
	return seal(dst, start)
}

// Decode reads a record that Encode wrote. It returns the whole answer, or none
// and ErrDamaged, ErrVersion or ErrKind. There is one record for an answer:
// what Encode would have written in another way is damaged.
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
