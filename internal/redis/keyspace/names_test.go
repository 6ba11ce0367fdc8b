package keyspace

import (
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestLockNames(t *testing.T) {
	digest := strings.Repeat("A", 43)
	tests := []struct{ prefix, key, lock, queue string }{
		{"reqlock:", "account:42", "reqlock:account:42", "{reqlock:account:42}:q"},
		{"", "42", "42", "{42}:q"},
		{"reqlock:", "{user1}:cart", "reqlock:{user1}:cart", "reqlock:{user1}:cart:q"},
		{"{app}:", "a}b", "{app}:a}b", "{app}:a}b:q"},
		{"p:", "open{brace", "p:open{brace", "{p:open{brace}:q"},
		{"p:", "a:q", "p:a:q", "{p:a:q}:q"}, // no hash tag: no companion has this name
		{"{app}:", "a:qq", "{app}:a:qq", "{app}:a:qq:q"},
		{"p:", "h:" + digest[1:], "p:h:" + digest[1:], "{p:h:" + digest[1:] + "}:q"},
	}
	for _, test := range tests {
		n := New(test.prefix)
		lock := n.Lock(test.key)
		if lock != test.lock || n.Companion(lock, ":q") != test.queue {
			t.Errorf("%q %q: %q and %q", test.prefix, test.key, lock, n.Companion(lock, ":q"))
		}
	}
	for _, key := range []string{"a}b", "}", "{}", "{}a{b}", "h:" + digest, "{a}:q", "{a}b:f", "x{a}:r", "{a}:s", "x{a}b:p", "{a}:q:q"} {
		lock := New("p:").Lock(key)
		if !strings.HasPrefix(lock, "p:h:") || len(lock) != len("p:h:")+43 || lock == "p:"+key {
			t.Errorf("%q is written as %q, want a digest", key, lock)
		}
	}
}

func TestKeyOfAName(t *testing.T) {
	for _, prefix := range []string{"", "p:", "{app}:"} {
		n := New(prefix)
		for _, key := range []string{"a", "{a}", "a:q", "{a}:q", "}", "h:x"} {
			name := n.Lock(key)
			got, ok := n.Key(name)
			if verbatim := name == prefix+key; ok != verbatim || (ok && got != key) {
				t.Errorf("%q: %q, %v", name, got, ok)
			}
			if key, ok := n.Key(n.Companion(name, QueueSuffix)); ok {
				t.Errorf("the queue of %q is taken for the lock of %q", name, key)
			}
		}
		for length, isKey := range map[int]bool{len("i:") + 4096: true, len("i:") + 4097: false, 4 << 20: false} {
			if _, ok := n.Key(n.Lock(strings.Repeat("k", length))); ok != isKey {
				t.Errorf("%q and %d bytes: %v", prefix, length, ok)
			}
		}
		if key, ok := n.Key(prefix); ok {
			t.Errorf("a bare prefix is taken for the lock of %q", key)
		}
	}
	if key, ok := New("p:").Key("q:a"); ok {
		t.Errorf("a foreign name is taken for the lock of %q", key)
	}
}

func TestCheckPrefix(t *testing.T) {
	for prefix, good := range map[string]bool{
		"": true, "reqlock:": true, "{app}:": true, "x{app}": true, "}{app}": true,
		"{": false, "}": false, "{app": false, "app}": false, "{}": false, "{}{app}": false,
	} {
		if err := CheckPrefix(prefix); (err == nil) != good {
			t.Errorf("%q: %v", prefix, err)
		}
	}
}

func FuzzAllNamesOfALockShareItsSlot(f *testing.F) {
	for _, key := range []string{"", "a", "{", "}", "{}", "{a}", "a{b}c", "}{", "{}{a}", "a}b{c", "{a", "\x00\xff{\r\n}", "h:x", "{a}:q", "{a}:q:f", "a:r", "{a}:s", "a}b{c}:p", "{a:q", "a}:q"} {
		f.Add("p:", key)
		f.Add("{app}:", key)
	}
	// CLUSTER KEYSLOT of a cluster node returns the slot of a name.
	rdb := redistest.Start(f, "--cluster-enabled", "yes").Client(f)
	f.Fuzz(func(t *testing.T, prefix, key string) {
		if CheckPrefix(prefix) != nil || key == "" || len(key) > maxKeyLen {
			return // such a prefix or key never becomes a name
		}
		n := New(prefix)
		lock := n.Lock(key)
		if again := string(n.AppendLock(nil, key)); again != lock {
			t.Errorf("%q is appended as %q", lock, again)
		}
		want, err := rdb.ClusterKeySlot(t.Context(), lock).Result()
		if err != nil {
			t.Fatal(err)
		}
		if channel := n.ShardChannel(lock, storetest.Me); rdb.ClusterKeySlot(t.Context(), channel).Val() != want {
			t.Errorf("the channel %q is not in the slot %d of its lock %q", channel, want, lock)
		}
		for _, suffix := range suffixes {
			name := n.Companion(lock, suffix)
			if again := string(n.AppendCompanion(nil, []byte(lock), suffix)); again != name {
				t.Errorf("%q is appended as %q", name, again)
			}
			if got := rdb.ClusterKeySlot(t.Context(), name).Val(); got != want {
				t.Errorf("%q has slot %d, its lock %q has %d", name, got, lock, want)
			}
			if owner, ownerKey, ok := n.OfRecord(name); ok != (suffix == RecordSuffix) || ok && (owner != lock || ownerKey != "" && ownerKey != key) {
				t.Errorf("%q is the record of the lock %q with the key %q: %v", name, owner, ownerKey, ok)
			}
			other, isKey := strings.CutPrefix(name, prefix)
			if name == lock || (isKey && n.Lock(other) == name) {
				t.Errorf("the companion %q of %q is itself a lock", name, lock)
			}
		}
	})
}

func FuzzNoTwoKeysShareALock(f *testing.F) {
	f.Add("a", "b")
	f.Add("a}", "h:8Tk9wjT3xWWxNPZdVDvQmbHeFtzbTPKdmSHFVhVqGsc")
	f.Add("{}", "}")
	f.Add("r", "0")
	f.Fuzz(func(t *testing.T, one, other string) {
		for _, prefix := range []string{"", "p:", "{app}:"} {
			n := New(prefix)
			if one != other && n.Lock(one) == n.Lock(other) {
				t.Errorf("%q and %q share %q", one, other, n.Lock(one))
			}
			if written := strings.TrimPrefix(n.Lock(one), prefix); one != written && n.Lock(written) == n.Lock(one) {
				t.Errorf("%q and its digest share a lock", one)
			}
		}
	})
}

func FuzzNoTwoLocksShareACompanion(f *testing.F) {
	f.Add("x", "{x}")
	f.Add("{x}", "{{x}}")
	f.Add("{a}b", "a}b")
	f.Fuzz(func(t *testing.T, one, other string) {
		for _, prefix := range []string{"", "p:", "{app}:", "{app}"} {
			n := New(prefix)
			a, b := n.Lock(one), n.Lock(other)
			if one != "" && other != "" && one != other && n.Companion(a, QueueSuffix) == n.Companion(b, QueueSuffix) {
				t.Errorf("%q and %q share the queue %q", a, b, n.Companion(a, QueueSuffix))
			}
		}
	})
}

func TestMain(m *testing.M) { suite.Main(m) }

func FuzzHintsAreParsedStrictly(f *testing.F) {
	for _, payload := range storetest.ForgedHints {
		if _, _, ok := ParseHint(payload, storetest.Me); ok {
			f.Errorf("%q is parsed as a hint", payload)
		}
		f.Add(payload)
	}
	f.Add(storetest.Me1 + " p:k")
	f.Add(storetest.Me1 + " p:k with spaces\r\n")
	f.Add(storetest.MeReader1 + " p:k")
	for _, payload := range []string{storetest.Me1 + " p:k", storetest.MeReader1 + " p:k", storetest.MePermit1 + " p:k"} {
		if _, _, ok := ParseHint(payload, storetest.Me); !ok {
			f.Errorf("%q is not parsed as a hint", payload)
		}
	}
	f.Fuzz(func(t *testing.T, payload string) {
		token, name, ok := ParseHint(payload, storetest.Me)
		if ok && (token+" "+name != payload || !strings.HasPrefix(token, storetest.Me+":") || name == "") {
			t.Errorf("%q is parsed as %q and %q", payload, token, name)
		}
	})
}
