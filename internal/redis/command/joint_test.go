package command

import (
	"cmp"
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
	)
	for name, test := range map[string]struct {
		reply     any
		want      [2]string // see textOf
		isRefused bool
		then      string // what the next Joint sends; "" is joined
	}{
		"both done":              {reply: []any{int64(1)}, want: [2]string{"1", "1"}},
		"one not done":           {reply: []any{int64(5), int64(2)}, want: [2]string{"5", "-1"}},
		"none done":              {reply: []any{int64(1), int64(1), int64(2)}, want: [2]string{"-1", "-1"}},
		"the script is unknown":  {reply: serverError("NOSCRIPT No"), want: [2]string{"NOSCRIPT No", "NOSCRIPT No"}, then: bySource},
		"lost":                   {reply: io.EOF, want: [2]string{"EOF", "EOF"}},
		"not served":             {reply: serverError("LOADING Redis"), want: [2]string{"LOADING Redis", "LOADING Redis"}},
		"the slot moves":         {reply: serverError("TRYAGAIN Keys"), want: [2]string{"refused: TRYAGAIN Keys", "refused: TRYAGAIN Keys"}},
		"refused":                {reply: serverError("CROSSSLOT Keys"), want: [2]string{"refused: CROSSSLOT Keys", "refused: CROSSSLOT Keys"}, isRefused: true},
		"no list":                {reply: int64(1), want: [2]string{"unexpected", "unexpected"}},
		"a place of no Part":     {reply: []any{int64(1), int64(3)}, want: [2]string{"unexpected", "unexpected"}},
		"a place before all":     {reply: []any{int64(1), int64(0)}, want: [2]string{"unexpected", "unexpected"}},
		"a place that is a text": {reply: []any{int64(1), "1"}, want: [2]string{"unexpected", "unexpected"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var j Joint
			// send sends two Parts, and returns their replies.
			send := func(want string, reply any) (got [2]string) {
				parts := [2]*Part{newPart(1), newPart(2)}
				j.Clear()
				for _, part := range parts {
					if !j.Add(part) {
						t.Fatal("not added")
					}
				}
				j.Receive(answer(t, j.AppendTo(nil), want, reply))
				for i, part := range parts {
					got[i] = textOf(part.Reply(io.ErrUnexpectedEOF)) // the error of other commands
				}
				return got
			}
			if got := send(joined, test.reply); got != test.want || j.IsRefused != test.isRefused {
				t.Errorf("%q, want %q, refused: %v", got, test.want, j.IsRefused)
			}
			for _, want := range []string{cmp.Or(test.then, joined), joined} { // the Joint is used again
				if got := send(want, []any{int64(1), int64(2)}); got != [2]string{"1", "-1"} || j.IsRefused {
					t.Errorf("then %q, refused: %v", got, j.IsRefused)
				}
			}
		})
	}
}

// textOf returns the text of a reply.
func textOf(value any, err error) string {
	var refused *RefusedError
	var unexpected *UnexpectedReplyError
	switch {
	case err == nil:
		return fmt.Sprint(value)
	case value != nil:
		return "a value and an error"
	case errors.As(err, &refused):
		return "refused: " + err.Error()
	case errors.As(err, &unexpected):
		return "unexpected"
	default:
		return err.Error()
	}
}

// answer replies to the only command as go-redis does, and returns the error.
func answer(t *testing.T, cmds []redis.Cmder, want string, reply any) error {
	t.Helper()
	if got := fmt.Sprint(cmds[0].Args()); len(cmds) != 1 || got != want {
		t.Errorf("%d commands, the first is %s, want %s", len(cmds), got, want)
	}
	err, failed := reply.(error)
	if failed {
		cmds[0].SetErr(err)
	} else {
		cmds[0].(interface{ SetVal(any) }).SetVal(reply)
	}
	return err
}

// A single Part is sent itself. Other commands, and Parts for another script, are not added.
func TestJointOfOnePart(t *testing.T) {
	t.Parallel()
	var j Joint
	if j.Receive(nil); j.AppendTo(nil) != nil {
		t.Error("an empty Joint sends commands")
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
	j.Receive(answer(t, j.AppendTo(nil), "[evalsha each 2 k1 q1 t1]", int64(1)))
	if value, err := part.Reply(nil); value != int64(1) || err != nil {
		t.Errorf("%v, %v", value, err)
	}
}
