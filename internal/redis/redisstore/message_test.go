package redisstore

import (
	"strings"
	"testing"
)

// forged are messages that are no hints for the process me.
var forged = []string{
	"", " ", "  ", "k", "p:k", me1, me1 + " ", me1 + "p:k", " " + me1 + " p:k", bob1 + " p:k",
	me + " p:k", me + ": p:k", me + ":x p:k", me + ":-1 p:k", me + ":+1 p:k", me + ":1e3 p:k", me + ":1_0 p:k",
	me + ":99999999999999999999 p:k", me[1:] + ":1 p:k", "a" + me1 + " p:k", strings.ToUpper(me1) + " p:k",
	"\x00" + me1 + " p:k", strings.Repeat("x", 1<<16),
}

func FuzzMessagesAreReadStrictly(f *testing.F) {
	for _, payload := range forged {
		if _, _, ok := parseMessage(payload, me); ok {
			f.Errorf("%q is taken for a hint", payload)
		}
		f.Add(payload)
	}
	f.Add(me1 + " p:k")
	f.Add(me1 + " p:k with spaces\r\n")
	f.Fuzz(func(t *testing.T, payload string) {
		token, name, ok := parseMessage(payload, me)
		if ok && (token+" "+name != payload || !strings.HasPrefix(token, me+":") || name == "") {
			t.Errorf("%q is read as %q and %q", payload, token, name)
		}
	})
}
