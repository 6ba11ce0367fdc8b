package storetest

import "strings"

// ForgedHints are messages that the process Me must not decode as hints.
var ForgedHints = []string{
	"", " ", "  ", "k", "p:k", Me1, Me1 + " ", Me1 + "p:k", " " + Me1 + " p:k", Bob1 + " p:k",
	Me + " p:k", Me + ": p:k", Me + ":x p:k", Me + ":-1 p:k", Me + ":+1 p:k", Me + ":1e3 p:k", Me + ":1_0 p:k",
	Me + ":01 p:k", Me + ":00 p:k", Me + ":02017 p:k", Me + ":00-1 p:k", Me + ":99999999999999999999 p:k", Me[1:] + ":1 p:k", "a" + Me1 + " p:k", strings.ToUpper(Me1) + " p:k",
	"\x00" + Me1 + " p:k", strings.Repeat("x", 1<<16),
}
