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

// aboutCut matches the commands that name a key of these tests.
func aboutCut(command []string) bool {
	return len(command) > 1 && strings.HasPrefix(command[1], "cut:")
}

// rest reads all that still comes until the connection ends.
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

// Nothing but the batch is touched: not what came before it, nor other
// connections, nor the next command that would match.
func TestCutBatchLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	proxy, _ := newPair(t)
	w, other := dialWire(t, proxy.Addr()), dialWire(t, proxy.Addr())
	cut := proxy.CutBatch(aboutCut, 2, Uncut, 7)
	w.send("PING", "ECHO before", "SET cut:k v")
	w.expect("+PONG\r\n")
	w.expect("$6\r\nbefore\r\n")
	w.expectSilence() // the batch is not complete
	other.send("PING")
	other.expect("+PONG\r\n")
	w.send("GET cut:k")
	if got := w.rest(); got != "+OK\r\n$1" {
		t.Errorf("received %q", got)
	}
	if outcomes := suite.Receive(t, "the results of the batch", cut); len(outcomes) != 2 || !outcomes[0].Delivered || outcomes[1].Delivered {
		t.Errorf("outcomes %+v", outcomes)
	}
	other.send("SET cut:k v", "PING")
	other.expect("+OK\r\n")
	other.expect("+PONG\r\n")
}

func TestCutBatchThatCutsNothing(t *testing.T) {
	t.Parallel()
	proxy, _ := newPair(t)
	w := dialWire(t, proxy.Addr())
	cut := proxy.CutBatch(aboutCut, len(aBatch), Uncut, Uncut)
	for _, b := range encode(aBatch...) { // in pieces
		if _, err := w.conn.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	for _, reply := range theReplies {
		w.expect(reply)
	}
	for i, outcome := range suite.Receive(t, "the results of the batch", cut) {
		if outcome.Reply != theReplies[i] || !outcome.Delivered {
			t.Errorf("%+v", outcome)
		}
	}
	w.send("PING")
	w.expect("+PONG\r\n")
	if got := proxy.Commands()["INCR"]; got != 1 {
		t.Errorf("INCR was counted %d times", got)
	}
}

// Both cuts of one batch and of the one after it, which follow each other.
func TestCutBatchTwice(t *testing.T) {
	t.Parallel()
	proxy, observer := newPair(t)
	first := proxy.CutBatch(aboutCut, 1, 0, Uncut)
	second := proxy.CutBatch(aboutCut, 1, Uncut, 0)
	for i, cut := range []<-chan []CutCommand{first, second} {
		w := dialWire(t, proxy.Addr())
		w.send("SET cut:k v")
		w.expectClosed()
		if outcome := suite.Receive(t, "the results of the batch", cut)[0]; outcome.Delivered || (outcome.Reply != "") != (i == 1) {
			t.Errorf("%d: %+v", i, outcome)
		}
		if n := observer.Exists(t.Context(), "cut:k").Val(); n != int64(i) {
			t.Errorf("%d: %d keys", i, n)
		}
	}
}

func TestCutBatchThatIsNotCompleted(t *testing.T) {
	t.Parallel()
	proxy, observer := newPair(t)
	cut := proxy.CutBatch(aboutCut, 2, Uncut, Uncut)
	w := dialWire(t, proxy.Addr())
	w.send("SET cut:k v")
	suite.Eventually(t, "the command on its way", func() bool { return proxy.Commands()["SET"] == 1 })
	proxy.Cut()
	w.expectClosed()
	if n := observer.Exists(t.Context(), "cut:k").Val(); n != 0 {
		t.Error("a part of the batch was executed")
	}
	select {
	case outcomes := <-cut:
		t.Errorf("told of %+v", outcomes)
	default:
	}
}

// A push message is no reply, and is not kept back.
func TestCutBatchLetsPushMessagesPass(t *testing.T) {
	t.Parallel()
	proxy, observer := newPair(t)
	w := dialWire(t, proxy.Addr())
	w.send("HELLO 3")
	w.next()
	w.send("CLIENT TRACKING ON BCAST")
	w.expect("+OK\r\n")
	cut := proxy.CutBatch(Named("BLPOP"), 2, Uncut, 0)
	w.send("BLPOP list 0", "PING") // the batch waits in the server
	suite.Eventually(t, "a blocked client", func() bool {
		return strings.Contains(observer.Info(t.Context(), "clients").Val(), "blocked_clients:1\r\n")
	})
	if err := observer.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	w.expect(">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n")
	if err := observer.RPush(t.Context(), "list", "v").Err(); err != nil {
		t.Fatal(err)
	}
	if outcomes := suite.Receive(t, "the results of the batch", cut); outcomes[0].Delivered || outcomes[1].Reply != "+PONG\r\n" {
		t.Errorf("%+v", outcomes)
	}
	if got := w.rest(); strings.Contains(got, "PONG") {
		t.Errorf("received %q", got)
	}
}
