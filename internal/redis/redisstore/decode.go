package redisstore

import (
	"fmt"
	"time"

	"github.com/reqlock/reqlock/internal/store"
)

// A shapeError is the fault of a reply that is not of the command's form, as
// from a proxy that answers in its own way. Nothing of it is believed.
type shapeError struct{ kind string }

// Error names the reply's type, never its content: that may be a token.
func (e *shapeError) Error() string { return "unexpected reply of type " + e.kind }

func errShape(value any) error { return &shapeError{fmt.Sprintf("%T", value)} }

// absent is the value that the server did not have. A nil value is none: it is
// what is left of an error that a hook of the client's has swallowed.
type absent struct{}

// decodeTake reads the answer of SET NX, which says whether it was set, or that
// of SET NX GET, which says what was there. Our own token in the key means that an
// earlier send set it, at the earliest when the exchange was begun.
func decodeTake(r reply, x *exchange) (store.Answer, error) {
	if r.err != nil {
		return store.Answer{}, r.err
	}
	held := store.Answer{Granted: true, Since: r.sent, Line: store.LineUnknown}
	switch value := r.value.(type) {
	case wasSet:
		if !value {
			return store.Answer{Unnamed: true}, nil
		}
		return held, nil
	case absent:
		return held, nil
	case string:
		if value == x.request.Token {
			held.Since = x.begun
			return held, nil
		}
		return store.Answer{Holder: value}, nil
	default:
		return store.Answer{}, errShape(r.value)
	}
}

// decodeEnqueue reads the answer of enqueue.lua.
func decodeEnqueue(r reply, x *exchange) (store.Answer, error) {
	if r.err != nil {
		return store.Answer{}, r.err
	}
	fields, _ := r.value.([]any)
	if answer, ok := decodeAsk(fields, r.sent, x); ok {
		return answer, nil
	}
	return store.Answer{}, errShape(r.value)
}

// decodeAsk reads what ask.lua says.
func decodeAsk(fields []any, sent time.Time, x *exchange) (answer store.Answer, ok bool) {
	if line, fence, fences, ok := decodeHeld(fields, x.request.Fences); ok {
		return store.Answer{Granted: true, Since: sent, Line: line, Fence: fence, Fences: fences}, true
	}
	if len(fields) != 4 || fields[0] != int64(0) {
		return store.Answer{}, false
	}
	holder, isText := fields[1].(string)
	pttl, isNumber := fields[2].(int64)
	silent, isFlag := decodeFlag(fields[3])
	ok = isText && isNumber && isFlag && holder != x.request.Token
	return store.Answer{Holder: holder, Remaining: lifeOf(pttl), Silent: silent}, ok
}

// decodeFlag reads a 0 or a 1.
func decodeFlag(field any) (flag, ok bool) {
	flag = field == int64(1)
	return flag, flag || field == int64(0)
}

// decodeRenew reads the answer of renew.lua.
func decodeRenew(r reply, x *exchange) (store.Renewal, error) {
	if r.err != nil {
		return store.Renewal{}, r.err
	}
	fields, _ := r.value.([]any)
	if x.request.Fences == 0 && len(fields) == 4 && [4]any(fields) == [4]any{int64(1), int64(-1), int64(0), int64(0)} {
		return store.Renewal{Held: true, Since: r.sent, Line: store.LineUnknown}, nil
	}
	if line, fence, fences, ok := decodeHeld(fields, x.request.Fences); ok {
		return store.Renewal{Held: true, Since: r.sent, Line: line, Fence: fence, Fences: fences}, nil
	}
	if len(fields) == 1 && fields[0] == int64(0) {
		return store.Renewal{Since: r.sent}, nil
	}
	return store.Renewal{}, errShape(r.value)
}

// decodeHeld reads what ask.lua and renew.lua say of a key that is ours:
// {1, length of the line, first fencing number, how many numbers}. There are
// numbers if, and only if, some were wanted, and not more than were wanted.
func decodeHeld(fields []any, wanted int) (line int, fence int64, fences int, ok bool) {
	if len(fields) != 4 || fields[0] != int64(1) {
		return 0, 0, 0, false
	}
	length, isLength := fields[1].(int64)
	fence, isFence := fields[2].(int64)
	count, isCount := fields[3].(int64)
	ok = isLength && isFence && isCount && length >= 0 && fence >= 0 && count >= 0 &&
		(fence > 0) == (wanted > 0) && (count > 0) == (wanted > 0) && count <= int64(wanted)
	return int(length), fence, int(count), ok
}

// tooBrief is what release.lua answers to its short form where that does not do.
const tooBrief = int64(-1)

// ends are what the numbers that release.lua answers stand for.
var ends = [...]store.End{store.NotHeld, store.Freed, store.Handed, store.Kept}

// decodeRelease reads the answer of release.lua. A key is freed only where
// nobody rejoins, and kept only where somebody does.
func decodeRelease(r reply, x *exchange) (store.Released, error) {
	if r.err != nil {
		return store.Released{}, r.err
	}
	number, isNumber := r.value.(int64)
	if !isNumber || number < 0 || number >= int64(len(ends)) {
		return store.Released{}, errShape(r.value)
	}
	end, rejoins := ends[number], x.request.Rejoin != ""
	if (end == store.Freed && rejoins) || (end == store.Kept && !rejoins) {
		return store.Released{}, errShape(r.value)
	}
	return store.Released{End: end, Since: r.sent}, nil
}

// lifeOf returns how long a key of this PTTL lives at most. The server rounds
// down, so the last millisecond reads as 0.
func lifeOf(pttl int64) time.Duration {
	if pttl < 0 {
		return -1
	}
	return time.Duration(pttl+1) * time.Millisecond
}
