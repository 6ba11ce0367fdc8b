package keyspace

import (
	"path"
	"strings"
	"testing"
)

// The pattern and OfRecord find each record of a prefix, whatever characters the prefix and the key have.
func TestRecordsAreFoundByTheirNames(t *testing.T) {
	digest := "h:" + strings.Repeat("A", 43)
	for _, prefix := range []string{"", "p:", "{app}:", `a*b?[c]\d:`, "{a*}"} {
		n := New(prefix)
		for _, key := range []string{"i:k", "i:{u}:k", "i:a:r", "i:o{k", "i:" + digest, "i:a}b", digest} {
			lock, want := n.Lock(key), key
			if lock != prefix+key { // a digest
				want = ""
			}
			record := n.Companion(lock, RecordSuffix)
			if matched, err := path.Match(n.RecordPattern(), record); !matched || err != nil {
				t.Errorf("%q does not match %q: %v", n.RecordPattern(), record, err)
			}
			if gotLock, got, ok := n.OfRecord(record); gotLock != lock || got != want || !ok {
				t.Errorf("%q and %q: the record %q is that of %q with the key %q, %v", prefix, key, record, gotLock, got, ok)
			}
		}
	}
	for _, foreign := range []string{"", ":r", "{p:}:r", "p::r", "{p:k}:q", "p:k:r", "{p:k:r", "{q:k}:r", "{{p:k}}:r", "{p:k}:r:r", "p:h:x:r"} {
		if lock, key, ok := New("p:").OfRecord(foreign); ok {
			t.Errorf("%q is the record of %q with the key %q", foreign, lock, key)
		}
	}
}
