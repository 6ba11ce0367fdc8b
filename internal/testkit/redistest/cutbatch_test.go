package redistest

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// aBatch is the batch of these tests, and theReplies what the server answers.
var (
	aBatch     = []string{"SET cut:k v", "INCR n", "GET cut:k"}
	theReplies = []string{"+OK\r\n", ":1\r\n", "$1\r\nv\r\n"}
)

func aboutCut(command []string) bool {
	return len(command) > 1 && strings.HasPrefix(command[1], "cut:")
}

func (w *wire) rest() string {
	w.t.Helper()
	all, err := io.ReadAll(w.reader)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(all)
}

// wholly returns how many of the texts lie wholly within the first bytes of them.
func wholly(texts []string, bytes int) (n int) {
	for _, text := range texts {
		if bytes -= len(text); bytes < 0 {
			break
		}
		n++
	}
	return n
}

func TestCutBatchAtEachByte(t *testing.T) {
	t.Parallel()
	proxy, observer := newPair(t)
	var sent []string
	for _, command := range aBatch {
		sent = append(sent, string(encode(command)))
	}
	commandBytes, replyBytes := len(strings.Join(sent, "")), len(strings.Join(theReplies, ""))

	cutAt := func(commands, replies int) {
		if err := observer.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		cut := proxy.CutBatch(aboutCut, len(aBatch), commands, replies)
		w := dialWire(t, proxy.Addr())
		w.send(aBatch...)
		executed := wholly(sent, commands)
		wantReceived := strings.Join(theReplies[:executed], "")
		wantReceived = wantReceived[:min(replies, len(wantReceived))]
		if got := w.rest(); got != wantReceived {
			t.Errorf("cut at %d, %d: received %q, want %q", commands, replies, got, wantReceived)
		}
		delivered := wholly(theReplies, len(wantReceived))
		for i, outcome := range suite.Receive(t, "the results of the batch", cut) {
			want := CutCommand{Command: strings.Fields(aBatch[i]), Bytes: len(sent[i]), Delivered: i < delivered}
			if i < executed {
				want.Reply = theReplies[i]
			}
			if !slices.Equal(outcome.Command, want.Command) || outcome.Bytes != want.Bytes ||
				outcome.Reply != want.Reply || outcome.Delivered != want.Delivered {
				t.Errorf("cut at %d, %d: %+v, want %+v", commands, replies, outcome, want)
			}
		}
		if n := observer.Exists(t.Context(), "cut:k", "n").Val(); n != int64(min(executed, 2)) {
			t.Errorf("cut at %d, %d: %d keys", commands, replies, n)
		}
		w.hangUp()
	}
	for n := range commandBytes {
		cutAt(n, Uncut)
		cutAt(n, 0)
	}
	for n := range replyBytes {
		cutAt(Uncut, n)
	}
}
