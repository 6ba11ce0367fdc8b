package answer_test

import (
	"runtime"
	"testing"

	"github.com/reqlock/reqlock/internal/answer"
)

// A record takes memory for its content, not for the lengths that it states. This test is
// not parallel, because it measures the memory of the process.
func TestDecodeAllocatesNoMoreThanItReads(t *testing.T) {
	const much = "\xff\xff\xff\xff\x0f" // 4 GiB
	whole := func(b []byte) error {
		_, err := answer.Decode(b)
		return err
	}
	reply := func(b []byte) error {
		_, err := answer.DecodeReply(b)
		return err
	}
	for name, test := range map[string]struct {
		decode func([]byte) error
		record []byte
	}{
		"names":          {whole, framed(1, 1, "\xc8\x01"+much)},
		"name":           {whole, framed(1, 1, "\xc8\x01\x01"+much)},
		"values":         {whole, framed(1, 1, "\xc8\x01\x01\x01a"+much)},
		"value":          {whole, framed(1, 1, "\xc8\x01\x01\x01a\x01"+much)},
		"metadata":       {reply, framed(1, 2, "\x00"+much)},
		"trailer":        {reply, framed(1, 2, "\x00\x00"+much)},
		"type":           {reply, framed(1, 2, "\x00\x00\x00"+much)},
		"text":           {reply, framed(1, 2, "\x05\x00\x00"+much)},
		"detail's URL":   {reply, framed(1, 2, "\x05\x00\x00\x00"+much)},
		"detail's value": {reply, framed(1, 2, "\x05\x00\x00\x00\x00"+much)},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := test.decode(test.record)
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; err == nil || got > 1<<20 {
			t.Errorf("%s: %d bytes, %v", name, got, err)
		}
	}
}
