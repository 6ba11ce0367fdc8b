package command

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/script"
)

// each is a script for one lock, and together the script for several.
const each = "each"

var together = &script.Script{Source: "source", SHA: "sha"}

// newPart returns a call with a key of its own.
func newPart(number int) *Part {
	part := &Part{}
	part.Reset([]any{"evalsha", each, 2, fmt.Sprint("k", number), fmt.Sprint("q", number), fmt.Sprint("t", number)}, together)
	return part
}

// What a Joint sends, and which reply each of its two Parts gets.
func TestJoint(t *testing.T) {
	t.Parallel()
	const (
		joined   = "[evalsha sha 4 k1 q1 k2 q2 t1 t2]"
		bySource = "[eval source 4 k1 q1 k2 q2 t1 t2]"
		apart    = "[evalsha each 2 k1 q1 t1] [evalsha each 2 k2 q2 t2]"
	)
	noScript, crossSlot, loading := serverError("NOSCRIPT No matching script."), serverError("CROSSSLOT Keys in request don't hash"), serverError("LOADING ")
	unexpected := errors.New("unexpected")
	type round struct {
		sent    string
		replies []any // the last one is given to all commands after it
	}
	for name, test := range map[string]struct {
		rounds    []round
		want      [2]any
		isRefused bool
	}{
		"both done":              {rounds: []round{{joined, []any{[]any{int64(1)}}}}, want: [2]any{int64(1), int64(1)}},
		"one not done":           {rounds: []round{{joined, []any{[]any{int64(5), int64(2)}}}}, want: [2]any{int64(5), NotDone}},
		"none done":              {rounds: []round{{joined, []any{[]any{int64(1), int64(1), int64(2)}}}}, want: [2]any{NotDone, NotDone}},
		"the script is unknown":  {rounds: []round{{joined, []any{noScript}}, {bySource, []any{[]any{int64(1), int64(1)}}}}, want: [2]any{NotDone, int64(1)}},
		"lost":                   {rounds: []round{{joined, []any{io.EOF}}}, want: [2]any{io.EOF, io.EOF}},
		"the source is lost":     {rounds: []round{{joined, []any{noScript}}, {bySource, []any{io.EOF}}}, want: [2]any{io.EOF, io.EOF}},
		"refused":                {rounds: []round{{joined, []any{crossSlot}}, {apart, []any{int64(1), NotDone}}}, want: [2]any{int64(1), NotDone}, isRefused: true},
		"the source is refused":  {rounds: []round{{joined, []any{noScript}}, {bySource, []any{noScript}}, {apart, []any{int64(1)}}}, want: [2]any{int64(1), int64(1)}, isRefused: true},
		"not served":             {rounds: []round{{joined, []any{loading}}, {apart, []any{loading, int64(1)}}}, want: [2]any{loading, int64(1)}},
		"lost apart":             {rounds: []round{{joined, []any{crossSlot}}, {apart, []any{int64(1), io.EOF}}}, want: [2]any{int64(1), io.EOF}, isRefused: true},
		"no list":                {rounds: []round{{joined, []any{int64(1)}}}, want: [2]any{unexpected, unexpected}},
		"a place of no Part":     {rounds: []round{{joined, []any{[]any{int64(1), int64(3)}}}}, want: [2]any{unexpected, unexpected}},
		"a place before all":     {rounds: []round{{joined, []any{[]any{int64(1), int64(0)}}}}, want: [2]any{unexpected, unexpected}},
		"a place that is a text": {rounds: []round{{joined, []any{[]any{int64(1), "1"}}}}, want: [2]any{unexpected, unexpected}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var j Joint
			for range 2 { // it is used again
				j.Clear()
				parts := []*Part{newPart(1), newPart(2)}
				for _, part := range parts {
					if !j.Add(part) {
						t.Fatal("not added")
					}
				}
				next := j.AppendTo(nil)
				for _, r := range test.rounds {
					next = j.Receive(answer(t, next, r.sent, r.replies))
				}
				if len(next) > 0 || j.IsRefused != test.isRefused {
					t.Errorf("sends %v, refused: %v", next, j.IsRefused)
				}
				for i, part := range parts {
					value, err := part.Reply(io.ErrUnexpectedEOF) // the error of other commands
					var other *UnexpectedReplyError
					switch want, _ := test.want[i].(error); {
					case want == unexpected: //nolint:errorlint // a mark
						if !errors.As(err, &other) || value != nil {
							t.Errorf("part %d: %v, %v", i, value, err)
						}
					case want != nil:
						if !errors.Is(err, want) || value != nil {
							t.Errorf("part %d: %v, %v, want %v", i, value, err, want)
						}
					case err != nil || value != test.want[i]:
						t.Errorf("part %d: %v, %v, want %v", i, value, err, test.want[i])
					}
				}
			}
		})
	}
}

// answer replies to the commands as go-redis does, and returns the error of all together.
func answer(t *testing.T, cmds []redis.Cmder, want string, replies []any) (batchErr error) {
	t.Helper()
	var sent []string
	for i, cmd := range cmds {
		sent = append(sent, fmt.Sprint(cmd.Args()))
		reply := replies[min(i, len(replies)-1)]
		err, failed := reply.(error)
		if !failed {
			cmd.(interface{ SetVal(any) }).SetVal(reply)
			continue
		}
		cmd.SetErr(err)
		if batchErr == nil {
			batchErr = err
		}
	}
	if got := fmt.Sprint(sent); got != "["+want+"]" {
		t.Errorf("sent %s, want %s", got, want)
	}
	return batchErr
}

// A single Part is sent itself. Other commands, and Parts for another script, are not added.
func TestJointOfOnePart(t *testing.T) {
	t.Parallel()
	var j Joint
	if next := j.Receive(nil); next != nil || j.AppendTo(nil) != nil {
		t.Errorf("an empty Joint sends %v", next)
	}
	part, alone, other := newPart(1), newPart(2), newPart(3)
	alone.Reset(alone.Args(), nil)
	other.Reset(other.Args(), &script.Script{})
	var added []bool
	for _, c := range []Command{New(1, []any{"get", "k"}), alone, part, other} {
		added = append(added, j.Add(c))
	}
	if !slices.Equal(added, []bool{false, false, true, false}) {
		t.Errorf("added: %v", added)
	}
	if next := j.Receive(answer(t, j.AppendTo(nil), "[evalsha each 2 k1 q1 t1]", []any{int64(1)})); len(next) > 0 {
		t.Errorf("sends %v", next)
	}
	if value, err := part.Reply(nil); value != int64(1) || err != nil {
		t.Errorf("%v, %v", value, err)
	}
}
