package store

import (
	"strings"
	"testing"
)

func TestTokens(t *testing.T) {
	tests := []struct {
		limit  Limit
		number uint64
		want   string
	}{
		{Exclusive, 1, "p:1"},
		{Exclusive, 10, "p:10"},
		{Unlimited, 7, "p:007"},
		{1, 7, "p:0117"},
		{10, 42, "p:021042"},
		{MaxLimit, 3, "p:099999999993"},
	}
	for _, test := range tests {
		token := NewToken("p", test.limit, test.number)
		process, limit, number, ok := ParseToken(token)
		if token != test.want || process != "p" || limit != test.limit || number != test.number || !ok {
			t.Errorf("limit %d, number %d: token %q, parsed as %q, %d, %d, %v", test.limit, test.number, token, process, limit, number, ok)
		}
	}
}

func FuzzTokensAreParsedStrictly(f *testing.F) {
	for _, token := range []string{"p:1", "p:007", "p:0117", "p:0", "p:00", "p:01", "p:0101", "p:02-11", "p:03 11", "p:021", "p:-1", "p:+1", "p", ":1", "p:00-1"} {
		f.Add(token)
	}
	f.Fuzz(func(t *testing.T, token string) {
		process, limit, number, ok := ParseToken(token)
		if ok && (NewToken(process, limit, number) != token || strings.Contains(process, ":")) {
			t.Errorf("%q is parsed as %q, %d, %d", token, process, limit, number)
		}
	})
}
