package redisstore

import (
	"strings"
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/pipeline"
	"github.com/reqlock/reqlock/internal/store"
)

// oldServerError is the reply of a server that does not know SET with both NX and GET.
type oldServerError struct{}

func (oldServerError) Error() string {
	return "ERR syntax error: the server is older than redis 7.0, which reqlock needs for SET with NX and GET"
}

// RedisError marks the error as one that a server sent.
func (oldServerError) RedisError() {}

// decodeTake decodes the reply to SET NX, which says whether it has set the key, or to SET NX
// GET, which has the value before. If that is the token of the request, an earlier send has
// set it, at the earliest when the operation began.
func decodeTake(r pipeline.Reply, x *operation) (store.Answer, error) {
	switch {
	case r.Err != nil && x.script == nil && strings.HasPrefix(r.Err.Error(), "ERR syntax error"):
		return store.Answer{}, oldServerError{}
	case r.Err != nil:
		return store.Answer{}, r.Err
	}
	if !x.store.isModern.Load() {
		x.store.isModern.Store(true)
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
		return hideMarker(store.Answer{Holder: value}), nil
	default:
		return store.Answer{}, command.UnexpectedReply(r.Value)
	}
}

// The replies of sharedask.lua in its common cases: see sharedbeside.lua.
const (
	noRoom   = int64(0)
	hasLease = int64(1)
)

// decodeEnqueue decodes the reply of enqueue.lua or sharedask.lua.
func decodeEnqueue(r pipeline.Reply, x *operation) (store.Answer, error) {
	if number, isNumber := r.Value.(int64); isNumber && r.Err == nil && x.script == &x.store.scripts.SharedAsk {
		switch {
		case number == hasLease && x.fences == 0:
			return store.Answer{Granted: true, Since: r.Sent}, nil
		case number == noRoom && x.brief > 0:
			return store.Answer{HolderUnknown: true}, nil
		}
	}
	answer, err := decodeVote(r, x)
	return hideMarker(answer), err
}

// decodeBriefVote decodes the reply to a vote by the commands of a Take.
func decodeBriefVote(r pipeline.Reply, x *operation) (store.Answer, error) {
	answer, err := decodeTake(r, x)
	if value, isString := r.Value.(string); err == nil && isString && answer.Shared {
		return store.Answer{Holder: value}, nil // as in decodeVote
	}
	return answer, err
}

// decodeVote decodes the reply of vote.lua. A quorum has no shared leases: the marker of
// other clients' shared leases is a foreign holder.
func decodeVote(r pipeline.Reply, x *operation) (store.Answer, error) {
	if r.Err != nil {
		return store.Answer{}, r.Err
	}
	fields, _ := r.Value.([]any)
	if answer, ok := decodeAsk(fields, r.Sent, x); ok {
		return answer, nil
	}
	return store.Answer{}, command.UnexpectedReply(r.Value)
}

// askFields is how many fields the result of ask.lua has.
const askFields = 4

// decodeAsk decodes the result of ask.lua, sharedask.lua or vote.lua.
func decodeAsk(fields []any, sent time.Time, x *operation) (answer store.Answer, ok bool) {
	if waiting, fence, fences, ok := decodeHeld(fields, x.fences); ok {
		return store.Answer{Granted: true, Since: sent, Waiting: waiting, Fence: fence, Fences: fences}, true
	}
	if len(fields) != askFields || fields[0] != int64(0) {
		return store.Answer{}, false
	}
	holder, isString := fields[1].(string)
	pttl, isNumber := fields[2].(int64)
	foreign, isFlag := decodeFlag(fields[3])
	ok = isString && isNumber && isFlag && holder != x.target.Token
	return store.Answer{Holder: holder, Remaining: remaining(pttl), ForeignHolder: foreign}, ok
}

// decodeFlag decodes a 0 or a 1.
func decodeFlag(field any) (flag, ok bool) {
	flag = field == int64(1)
	return flag, flag || field == int64(0)
}

// decodeRenew decodes the reply of renew.lua or sharedrenew.lua.
func decodeRenew(r pipeline.Reply, x *operation) (store.Renewal, error) {
	if r.Err != nil {
		return store.Renewal{}, r.Err
	}
	fields, _ := r.Value.([]any)
	if x.fences == 0 && len(fields) == 4 && [4]any(fields) == [4]any{int64(1), int64(-1), int64(0), int64(0)} {
		return store.Renewal{Held: true, Since: r.Sent, Waiting: store.WaitingUnknown}, nil
	}
	if waiting, fence, fences, ok := decodeHeld(fields, x.fences); ok {
		return store.Renewal{Held: true, Since: r.Sent, Waiting: waiting, Fence: fence, Fences: fences}, nil
	}
	if len(fields) == 1 && fields[0] == int64(0) {
		return store.Renewal{Since: r.Sent}, nil
	}
	return store.Renewal{}, command.UnexpectedReply(r.Value)
}

// decodeHeld decodes what ask.lua and renew.lua return if the token holds the lock: {1,
// length of the queue, first fencing number, count of fencing numbers}. There are numbers
// if, and only if, some were wanted, and never more than were wanted.
func decodeHeld(fields []any, wanted int) (waiting int, fence int64, fences int, ok bool) {
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

// tooBrief is the reply of a script to its brief form if the long form has to follow.
const tooBrief = command.NotDone

// freedByValkey is the reply of free.lua if the key was freed by a server that has DELIFEQ.
const freedByValkey = int64(5)

// passedOn is the reply of release.lua if nobody held the key, and another token has it now.
const passedOn = int64(4)

// releaseCodes are the meanings of the numbers that release.lua, sharedrelease.lua,
// withdraw.lua and finish.lua return.
var releaseCodes = [...]store.ReleaseStatus{store.NotHeld, store.Freed, store.Handed, store.Kept}

// decodeRelease decodes the reply of release.lua or sharedrelease.lua. A key is freed only if no token rejoins,
// and kept only if one does. After a native release nobody holds the key: see afterNative.
func decodeRelease(r pipeline.Reply, x *operation) (store.ReleaseResult, error) {
	switch {
	case r.Err != nil && x.freed: // the timers of the waiters find the free key
		return store.ReleaseResult{Status: store.Freed, Since: r.Sent}, nil
	case r.Err != nil:
		return store.ReleaseResult{}, r.Err
	}
	if _, isNative := r.Value.(command.Deletion); isNative { // one that decides: see afterNative
		return store.ReleaseResult{Status: store.Freed, Since: r.Sent}, nil
	}
	number, isNumber := r.Value.(int64)
	if number == freedByValkey && x.script == &x.store.scripts.Release && x.rejoin == "" {
		x.store.native.offer()
		return store.ReleaseResult{Status: store.Freed, Since: r.Sent}, nil
	}
	if number == passedOn && x.script == &x.store.scripts.Release {
		return store.ReleaseResult{Status: x.unlessFreed(store.NotHeld, store.Handed), Since: r.Sent}, nil
	}
	if !isNumber || number < 0 || number >= int64(len(releaseCodes)) {
		return store.ReleaseResult{}, command.UnexpectedReply(r.Value)
	}
	status, rejoins := releaseCodes[number], x.rejoin != ""
	if (status == store.Freed && rejoins) || (status == store.Kept && !rejoins) {
		return store.ReleaseResult{}, command.UnexpectedReply(r.Value)
	}
	if status == store.NotHeld {
		status = x.unlessFreed(status, store.Freed)
	}
	return store.ReleaseResult{Status: status, Since: r.Sent}, nil
}

// unlessFreed returns the first status, or the other one if a native release has freed the key before.
func (x *operation) unlessFreed(status, freed store.ReleaseStatus) store.ReleaseStatus {
	if x.freed {
		return freed
	}
	return status
}

// decodeKeep decodes the reply of keep.lua.
func decodeKeep(r pipeline.Reply, x *operation) (store.ReleaseResult, error) {
	released, err := decodeRelease(r, x)
	if err == nil && released.Status != store.Freed && released.Status != store.NotHeld {
		return store.ReleaseResult{}, command.UnexpectedReply(r.Value)
	}
	return released, err
}

// remaining returns an upper bound of the remaining time of a key with this PTTL, and -1 for a
// key without a TTL. The server rounds down, so the PTTL is 0 during the last millisecond.
func remaining(pttl int64) time.Duration {
	if pttl < 0 {
		return -1
	}
	return time.Duration(pttl+1) * time.Millisecond
}
