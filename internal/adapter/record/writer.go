package record

import (
	"encoding/binary"
	"maps"
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

// headerLen returns the approximate length of an encoded header, in bytes.
func headerLen(h map[string][]string) int {
	n := binary.MaxVarintLen16
	for name, values := range h {
		n += 2*binary.MaxVarintLen16 + len(name)
		for _, value := range values {
			n += binary.MaxVarintLen16 + len(value)
		}
	}
	return n
}
