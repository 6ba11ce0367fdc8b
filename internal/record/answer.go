package record

import (
	"encoding/binary"
	"maps"
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
	dst = open(slices.Grow(dst, encodedLen(a)), kindHTTP)
	dst = binary.AppendUvarint(dst, uint64(a.Status)) //nolint:gosec // a negative one is refused when it is read
	dst = binary.AppendUvarint(dst, uint64(len(a.Header)))
	for _, name := range slices.Sorted(maps.Keys(a.Header)) {
		dst = appendText(dst, name)
		dst = binary.AppendUvarint(dst, uint64(len(a.Header[name])))
		for _, value := range a.Header[name] {
			dst = appendText(dst, value)
		}
	}
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
	a.Body = r.rest[:len(r.rest):len(r.rest)] // to append to it must not write into b
	if r.damaged {
		return Answer{}, ErrDamaged
	}
	return a, nil
}

// encodedLen is about how long the record of an answer is, in bytes.
func encodedLen(a Answer) int {
	n := frameLen + 2*binary.MaxVarintLen16 + len(a.Body)
	for name, values := range a.Header {
		n += 2*binary.MaxVarintLen16 + len(name)
		for _, value := range values {
			n += binary.MaxVarintLen16 + len(value)
		}
	}
	return n
}

// appendText writes a text with its length.
func appendText(dst []byte, text string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}
