package command

import (
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/script"
)

// A Part is a call of a script. If a batch has several, it may send a Joint in their place.
type Part struct {
	Generic
	together *script.Script // of the Joint; nil if the Part is always sent itself
	joined   bool           // the reply is that of a Joint
	value    any
	err      error
}

// Reset makes it a new call, which keeps nothing of the last one: EVALSHA with the script, the number
// of keys, the keys and the arguments.
func (c *Part) Reset(args []any, together *script.Script) {
	c.Generic.Reset(firstScriptKey, args)
	c.together, c.joined, c.value, c.err = together, false, nil, nil
}

// firstScriptKey is the place of the first key in the arguments of EVALSHA, and keyCount that of
// their number.
const (
	keyCount       = 2
	firstScriptKey = 3
)

// Reply is documented at Command.
func (c *Part) Reply(batchErr error) (any, error) {
	if c.joined {
		return c.value, c.err
	}
	return c.Generic.Reply(batchErr)
}

// split returns the keys and the arguments.
func (c *Part) split() (keys, args []any) {
	all := c.Args()
	keysEnd := firstScriptKey + all[keyCount].(int)
	return all[firstScriptKey:keysEnd], all[keysEnd:]
}

// NotDone is the reply to a Part for which the script of the Joint has changed nothing.
const NotDone = int64(-1)

// A RefusedError is the error of a Part whose Joint the server has refused. The Part itself was not sent.
type RefusedError struct{ error }

// Unwrap returns the error of the Joint.
func (e *RefusedError) Unwrap() error { return e.error }

// A Joint is one call of a script that does what several Parts do, which takes the server half of the
// time. Its keys and its arguments are those of the Parts, one after the other. The script replies with a
// list: the reply to each Part that was done, and then the places of the others, from 1.
//
// The zero value is empty and ready for use.
type Joint struct {
	Generic
	parts    []*Part
	args     []any
	bySource bool // the server does not know the script
	// IsRefused reports whether the server refuses Joints, as a proxy for several servers does.
	IsRefused bool
}

// Add adds the command if it is a Part for the same script as the others.
func (j *Joint) Add(c Command) (added bool) {
	part, ok := c.(*Part)
	if !ok || part.together == nil || len(j.parts) > 0 && part.together != j.parts[0].together {
		return false
	}
	j.parts = append(j.parts, part)
	return true
}

// Clear empties the Joint.
func (j *Joint) Clear() {
	clear(j.parts)
	clear(j.args)
	*j = Joint{parts: j.parts[:0], args: j.args[:0], bySource: j.bySource}
}

// AppendTo adds what is to be sent for the Parts: the Joint, or a single Part.
func (j *Joint) AppendTo(cmds []redis.Cmder) []redis.Cmder {
	switch len(j.parts) {
	case 0:
		return cmds
	case 1:
		return append(cmds, j.parts[0])
	}
	together, keys := j.parts[0].together, 0
	if j.bySource {
		j.args = append(j.args[:0], "eval", together.Source, nil)
	} else {
		j.args = append(j.args[:0], "evalsha", together.SHA, nil)
	}
	for _, part := range j.parts {
		own, _ := part.split()
		j.args, keys = append(j.args, own...), keys+len(own)
	}
	for _, part := range j.parts {
		_, own := part.split()
		j.args = append(j.args, own...)
	}
	j.args[keyCount] = keys
	j.Reset(firstScriptKey, j.args)
	return append(cmds, j)
}

// Receive gives each Part its reply after the commands were sent: batchErr is as in Reply. If the server does not
// know the script, each Part has that error, as if it had been sent itself, and the next Joint has the source.
func (j *Joint) Receive(batchErr error) {
	if len(j.parts) < 2 {
		return
	}
	value, err := j.Reply(batchErr)
	j.bySource = err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT")
	switch {
	case err == nil:
		j.share(value)
	case j.bySource || IsLost(err) || IsUnserved(err):
		j.giveAll(nil, err)
	default:
		j.IsRefused = !isPassing(err.Error())
		j.giveAll(nil, &RefusedError{err})
	}
}

// share gives each Part its reply.
func (j *Joint) share(value any) {
	list, _ := value.([]any)
	if !j.isReply(list) {
		j.giveAll(nil, UnexpectedReply(value))
		return
	}
	j.giveAll(list[0], nil)
	for _, place := range list[1:] {
		j.parts[place.(int64)-1].value = NotDone
	}
}

func (j *Joint) giveAll(value any, err error) {
	for _, part := range j.parts {
		part.joined, part.value, part.err = true, value, err
	}
}

// isReply reports whether the list is a reply of the script: a number, and then places.
func (j *Joint) isReply(list []any) bool {
	if len(list) == 0 {
		return false
	}
	return !slices.ContainsFunc(list[1:], func(field any) bool {
		place, isNumber := field.(int64)
		return !isNumber || place < 1 || place > int64(len(j.parts))
	})
}
