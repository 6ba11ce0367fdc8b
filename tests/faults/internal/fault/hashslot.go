package fault

import "strings"

// slots is the number of slots of a Cluster.
const slots = 16384

// hashSlot returns the slot of a key: the CRC16 of the key, or of its hash tag.
func hashSlot(key string) int {
	if _, after, braced := strings.Cut(key, "{"); braced {
		if tag, _, closed := strings.Cut(after, "}"); closed && tag != "" {
			key = tag
		}
	}
	crc := uint16(0)
	for _, b := range []byte(key) {
		crc ^= uint16(b) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			crc <<= 1
			if carry {
				crc ^= 0x1021
			}
		}
	}
	return int(crc % slots)
}
