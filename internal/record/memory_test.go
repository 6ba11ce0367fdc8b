package record_test

import (
	"runtime"
	"testing"

	"github.com/reqlock/reqlock/internal/record"
)

// A record takes memory for what it holds, and not for what it claims to. This
// test is not parallel: it looks at the memory of the process.
func TestDecodeAllocatesNoMoreThanItReads(t *testing.T) {
	const much = "\xff\xff\xff\xff\x0f" // 4 GiB
	for name, content := range map[string]string{
		"names":  "\xc8\x01" + much,
		"name":   "\xc8\x01\x01" + much,
		"values": "\xc8\x01\x01\x01a" + much,
		"value":  "\xc8\x01\x01\x01a\x01" + much,
	} {
		b := sealed(1, 1, content)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := record.Decode(b)
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; err == nil || got > 1<<20 {
			t.Errorf("%s: %d bytes, %v", name, got, err)
		}
	}
}
