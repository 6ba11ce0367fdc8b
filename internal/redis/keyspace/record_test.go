package keyspace

import (
	"path"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
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

// The record of a process has a name of its own: no key gives a lock or a companion that name.
func TestRecordOfProcessHasItsOwnName(t *testing.T) {
	for prefix, want := range map[string]string{
		"reqlock:": "{reqlock:process:" + storetest.Me + "}:p",
		"":         "{process:" + storetest.Me + "}:p",
		"{app}":    "{app}process:" + storetest.Me + ":p",
		`[a]\d:`:   `{[a]\d:process:` + storetest.Me + "}:p",
	} {
		n := New(prefix)
		name := n.Process(storetest.Me)
		if id, ok := n.OfProcess(name); name != want || id != storetest.Me || !ok {
			t.Errorf("%q: the record %q is that of %q, %v", prefix, name, id, ok)
		}
		for digits, want := range map[string]bool{"": true, storetest.Me[:4]: true, "zz": false} {
			if matched, err := path.Match(n.ProcessPattern(digits), name); matched != want || err != nil {
				t.Errorf("%q matches %q: %v, %v", n.ProcessPattern(digits), name, matched, err)
			}
		}
		key, isKey := strings.CutPrefix(name, prefix)
		if isKey && n.Lock(key) == name {
			t.Errorf("%q: the record has the name of the lock of %q", prefix, key)
		}
		lock := n.Lock("process:" + storetest.Me)
		for _, suffix := range []string{"", QueueSuffix, FenceSuffix, RecordSuffix, SharedSuffix} {
			if companion := n.Companion(lock, suffix); companion == name {
				t.Errorf("%q: the record has the name of a companion, %q", prefix, name)
			}
		}
		if _, _, isRecord := n.OfRecord(name); isRecord {
			t.Errorf("%q: the record of a process is taken for that of a request", name)
		}
	}
	me, upper := storetest.Me, strings.Repeat("A", idLen)
	for _, foreign := range []string{
		"", ":p", "{p:process:}:p", "{p:process:" + me + "}", "{p:process:" + me + "}:q", "p:process:" + me + ":p", "{p:process:" + upper + "}:p",
		"{q:process:" + me + "}:p", "{p:k" + me + "}:p", "{p:process:0" + me + "}:p", "{p:process:" + me + "}}:p", "{p:process:" + me + "}:p:p",
	} {
		if id, ok := New("p:").OfProcess(foreign); ok {
			t.Errorf("%q is the record of the process %q", foreign, id)
		}
	}
}
