package answer

import (
	"encoding/binary"
	"maps"
	"math/bits"
	"slices"
)

// appendText appends the length of a text and the text.
func appendText[Text string | []byte](dst []byte, text Text) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

// appendHeader appends names in ascending order, each with its values.
func appendHeader(dst []byte, h map[string][]string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(h)))
	for _, name := range slices.Sorted(maps.Keys(h)) {
		dst = appendText(dst, name)
		dst = binary.AppendUvarint(dst, uint64(len(h[name])))
		for _, value := range h[name] {
			dst = appendText(dst, value)
		}
	}
	return dst
}

// headerLen returns the length of an encoded header, in bytes.
func headerLen(h map[string][]string) int {
	n := numberLen(len(h))
	for name, values := range h {
		n += textLen(name) + numberLen(len(values))
		for _, value := range values {
			n += textLen(value)
		}
	}
	return n
}

// textLen returns the length of an encoded text, in bytes.
func textLen(text string) int { return numberLen(len(text)) + len(text) }

// numberLen returns the length of n as a varint, in bytes.
func numberLen(n int) int { return (bits.Len64(uint64(n)|1) + 6) / 7 } //nolint:gosec // as in Encode
