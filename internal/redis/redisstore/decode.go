package redisstore

import (
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/pipeline"
	"github.com/reqlock/reqlock/internal/store"
)

// decodeTake reads the answer of SET NX, which says whether it was set, or that
// of SET NX GET, which says what was there. Our own token in the key means that an
// earlier send set it, at the earliest when the exchange was begun.
func decodeTake(r pipeline.Reply, x *operation) (store.Answer, error) {
	if r.Err != nil {
		return store.Answer{}, r.Err
	}
	held := store.Answer{Granted: true, Since: r.Sent, Waiting: store.WaitingUnknown}
	switch value := r.Value.(type) {
	case command.WasSet:
		if !value {
			return store.Answer{HolderUnknown: true}, nil
		}
		return held, nil
	case command.NilReply:
		return held, nil
	case string:
		if value == x.target.Token {
			held.Since = x.Begun
			return held, nil
		}
		return store.Answer{Holder: value}, nil
	default:
		return store.Answer{}, command.UnexpectedReply(r.Value)
	}
}

// decodeEnqueue reads the answer of enqueue.lua.
func decodeEnqueue(r pipeline.Reply, x *operation) (store.Answer, error) {
	if r.Err != nil {
		return store.Answer{}, r.Err
	}
	fields, _ := r.Value.([]any)
	if answer, ok := decodeAsk(fields, r.Sent, x); ok {
		return answer, nil
	}
	return store.Answer{}, command.UnexpectedReply(r.Value)
}

// decodeAsk reads what ask.lua says.
func decodeAsk(fields []any, sent time.Time, x *operation) (answer store.Answer, ok bool) {
	if line, fence, fences, ok := decodeHeld(fields, x.fences); ok {
		return store.Answer{Granted: true, Since: sent, Waiting: line, Fence: fence, Fences: fences}, true
	}
	if len(fields) != 4 || fields[0] != int64(0) {
		return store.Answer{}, false
	}
	holder, isText := fields[1].(string)
	pttl, isNumber := fields[2].(int64)
	silent, isFlag := decodeFlag(fields[3])
	ok = isText && isNumber && isFlag && holder != x.target.Token
	return store.Answer{Holder: holder, Remaining: lifeOf(pttl), ForeignHolder: silent}, ok
}

// decodeFlag reads a 0 or a 1.
func decodeFlag(field any) (flag, ok bool) {
	flag = field == int64(1)
	return flag, flag || field == int64(0)
}

// decodeRenew reads the answer of renew.lua.
func decodeRenew(r pipeline.Reply, x *operation) (store.Renewal, error) {
	if r.Err != nil {
		return store.Renewal{}, r.Err
	}
	fields, _ := r.Value.([]any)
	if x.fences == 0 && len(fields) == 4 && [4]any(fields) == [4]any{int64(1), int64(-1), int64(0), int64(0)} {
		return store.Renewal{Held: true, Since: r.Sent, Waiting: store.WaitingUnknown}, nil
	}
	if line, fence, fences, ok := decodeHeld(fields, x.fences); ok {
		return store.Renewal{Held: true, Since: r.Sent, Waiting: line, Fence: fence, Fences: fences}, nil
	}
	if len(fields) == 1 && fields[0] == int64(0) {
		return store.Renewal{Since: r.Sent}, nil
	}
	return store.Renewal{}, command.UnexpectedReply(r.Value)
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
var ends = [...]store.ReleaseStatus{store.NotHeld, store.Freed, store.Handed, store.Kept}

// decodeRelease reads the answer of release.lua. A key is freed only where
// nobody rejoins, and kept only where somebody does.
func decodeRelease(r pipeline.Reply, x *operation) (store.ReleaseResult, error) {
	if r.Err != nil {
		return store.ReleaseResult{}, r.Err
	}
	number, isNumber := r.Value.(int64)
	if !isNumber || number < 0 || number >= int64(len(ends)) {
		return store.ReleaseResult{}, command.UnexpectedReply(r.Value)
	}
	end, rejoins := ends[number], x.rejoin != ""
	if (end == store.Freed && rejoins) || (end == store.Kept && !rejoins) {
		return store.ReleaseResult{}, command.UnexpectedReply(r.Value)
	}
	return store.ReleaseResult{Status: end, Since: r.Sent}, nil
}

// lifeOf returns how long a key of this PTTL lives at most. The server rounds
// down, so the last millisecond reads as 0.
func lifeOf(pttl int64) time.Duration {
	if pttl < 0 {
		return -1
	}
	return time.Duration(pttl+1) * time.Millisecond
}
