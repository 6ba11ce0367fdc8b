package keyspace

import (
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

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
