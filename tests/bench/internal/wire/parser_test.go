package wire

import (
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// The parser counts commands that are split at any byte.
func TestParserCountsCommands(t *testing.T) {
	ping := "*1\r\n$4\r\nPING\r\n"
	set := "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$12\r\n*1\r\n$4\r\nPING\r\n" // a value that looks like a command
	empty := "*2\r\n$3\r\nGET\r\n$0\r\n\r\n"
	long := "*2\r\n$4\r\nECHO\r\n$1234\r\n" + strings.Repeat("x", 1234) + "\r\n"
	for name, c := range map[string]struct {
		sent string
		want int
	}{
		"nothing":       {"", 0},
		"one":           {ping, 1},
		"a pipeline":    {ping + set + ping, 3},
		"an empty part": {empty + ping, 2},
		"a long part":   {long + long, 2},
		"half of one":   {ping + set[:len(set)-1], 1},
	} {
		t.Run(name, func(t *testing.T) {
			for cut := range len(c.sent) + 1 {
				var p parser
				got := p.ended([]byte(c.sent[:cut])) + p.ended([]byte(c.sent[cut:]))
				if got != c.want {
					t.Fatalf("cut at %d: %d commands, want %d", cut, got, c.want)
				}
			}
			var p parser
			got := 0
			for i := range len(c.sent) {
				got += p.ended([]byte{c.sent[i]})
			}
			if got != c.want {
				t.Errorf("byte by byte: %d commands, want %d", got, c.want)
			}
		})
	}
}
