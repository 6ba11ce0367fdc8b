package answer

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// Errors of Decode and DecodeReply. Their remedies differ: a damaged record is lost, a
// newer version of the program reads ErrVersion, and ErrKind means that the key is wrong.
var (
	ErrDamaged = errors.New("reqlock: the record is damaged")
	ErrVersion = errors.New("reqlock: the record is of an unknown version")
	ErrKind    = errors.New("reqlock: the record is of another kind")
)

// The frame of a record: a byte for its version, a byte for its kind, the content,
// and four bytes of CRC-32C over all of them, big endian. The frame is the same in all
// versions, so that damage differs from an unknown version.
const (
	version     = 1
	checksumLen = 4
	frameLen    = 2 + checksumLen
)

// The kinds of answers. Records contain these numbers, so they must not change.
const (
	kindHTTP = 1
	kindGRPC = 2
)

// castagnoli is the table of CRC-32C, which detects each flipped bit, and each burst of up
// to 32 bits. Processors have an instruction for it.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// beginFrame begins the frame of a record at the end of dst.
func beginFrame(dst []byte, kind byte) []byte { return append(dst, version, kind) }

// endFrame ends the frame of the record that begins at dst[start].
func endFrame(dst []byte, start int) []byte {
	return binary.BigEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// contentOf returns the content of a record of the kind. It checks the checksum first,
// because damage may change the version or the kind.
func contentOf(b []byte, kind byte) ([]byte, error) {
	if len(b) < frameLen {
		return nil, ErrDamaged
	}
	checked, sum := b[:len(b)-checksumLen], b[len(b)-checksumLen:]
	switch {
	case crc32.Checksum(checked, castagnoli) != binary.BigEndian.Uint32(sum):
		return nil, ErrDamaged
	case checked[0] != version:
		return nil, ErrVersion
	case checked[1] != kind:
		return nil, ErrKind
	}
	return checked[2:], nil
}
