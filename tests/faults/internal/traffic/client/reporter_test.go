package client

import (
	"bytes"
	"os"
	"testing"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/tests/faults/internal/history"
	"github.com/reqlock/reqlock/tests/internal/clock"
)

func TestReportsAreShort(t *testing.T) {
	b := newFixture(t)
	call := b.report(history.Op{Kind: history.Lock, Key: "k"})
	call.end(clock.Now(), history.Failed, &core.Error{Kind: core.ErrUnavailable, Cause: errLong{}})
	text, err := os.ReadFile(b.reports)
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Split(bytes.TrimSpace(text), []byte("\n")); len(lines) != 2 || len(lines[1]) > 4096 {
		t.Errorf("%d lines, the last of %d bytes", len(lines), len(lines[len(lines)-1]))
	}
}

// errLong is like the error of a server that quotes a long command. JSON needs six bytes
// for each byte of it.
type errLong struct{}

func (errLong) Error() string { return string(bytes.Repeat([]byte{1}, 10_000)) }
