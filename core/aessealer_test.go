package core_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/core"
)

// sealerOf returns a Sealer with the keys of these ids, of which the first one is the current one.
func sealerOf(tb testing.TB, ids ...string) *core.AESSealer {
	tb.Helper()
	keys := make(map[string][]byte)
	for _, id := range ids {
		keys[id] = bytes.Repeat([]byte(id[:1]), 32)
	}
	sealer, err := core.NewAESSealer(ids[0], keys)
	if err != nil {
		tb.Fatal(err)
	}
	return sealer
}

// The error names the id of the key that is wrong, and no key.
func TestWrongKeysOfAnAESSealer(t *testing.T) {
	t.Parallel()
	short, key, long := []byte("a-short-secret"), []byte(strings.Repeat("k", 32)), strings.Repeat("i", 256)
	for name, test := range map[string]struct {
		current string
		keys    map[string][]byte
		want    string
	}{
		"no keys":           {"now", nil, `"now"`},
		"no current key":    {"now", map[string][]byte{"old": key}, `"now"`},
		"a short key":       {"now", map[string][]byte{"now": key, "old": short}, `the key "old" has 14 bytes, and needs 32`},
		"an empty id":       {"", map[string][]byte{"": key}, "1 to 255 bytes"},
		"an id that's long": {long, map[string][]byte{long: key}, "1 to 255 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := core.NewAESSealer(test.current, test.keys)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), string(short)) {
				t.Errorf("got %v", err)
			}
		})
	}
	for name, sealer := range map[string]core.Sealer{"nil": nil, "a nil AESSealer": (*core.AESSealer)(nil), "an empty one": &core.AESSealer{}} {
		if _, err := core.New(newEmbedded(t), core.WithSealer(sealer)); err == nil || !strings.Contains(err.Error(), "NewAESSealer") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
