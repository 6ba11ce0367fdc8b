package redisstore

import (
	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/pipeline"
	"github.com/reqlock/reqlock/internal/store"
)

// decodeBegin reads the answer of begin.lua: a verdict, or what ask.lua says and
// one field more.
func decodeBegin(r pipeline.Reply, x *operation) (store.Answer, error) {
	if r.Err != nil {
		return store.Answer{}, r.Err
	}
	fields, _ := r.Value.([]any)
	if answer, ok := decodeVerdict(fields, x.attempt.Rerun); ok {
		return answer, nil
	}
	if last := len(fields) - 1; last >= 0 {
		if answer, ok := decodeAsk(fields[:last], r.Sent, x); ok && decodeBegun(&answer, fields[last]) {
			return answer, nil
		}
	}
	return store.Answer{}, command.UnexpectedReply(r.Value)
}

// decodeVerdict reads why there is nothing to run. An attempt that died is a
// reason only where it is not run again. Nobody waits for the word that this
// attempt was aborted, so that is no verdict.
func decodeVerdict(fields []any, rerun bool) (answer store.Answer, ok bool) {
	switch {
	case len(fields) == 2 && fields[0] == int64(2):
		record, isText := fields[1].(string)
		return store.Answer{Verdict: store.Done, Record: []byte(record)}, isText
	case len(fields) != 1:
		return store.Answer{}, false
	}
	switch fields[0] {
	case int64(3):
		return store.Answer{Verdict: store.Sealed}, true
	case int64(4):
		return store.Answer{Verdict: store.Mismatch}, true
	case int64(5):
		return store.Answer{Verdict: store.Interrupted}, !rerun
	default:
		return store.Answer{}, false
	}
}

// decodeBegun reads what begin.lua adds to the answer of ask.lua: the number of
// the attempt, or whether another one runs.
func decodeBegun(answer *store.Answer, field any) (ok bool) {
	if !answer.Granted {
		answer.Running, ok = decodeFlag(field)
		return ok
	}
	number, isNumber := field.(int64)
	answer.Number = int(number)
	return isNumber && number > 0
}

// decodeFinish reads the answer of finish.lua. Nobody rejoins, and an abort
// restores nothing.
func decodeFinish(r pipeline.Reply, x *operation) (store.ReleaseResult, error) {
	if r.Err != nil {
		return store.ReleaseResult{}, r.Err
	}
	fields, _ := r.Value.([]any)
	if len(fields) == 2 {
		end, isEnd := fields[0].(int64)
		stored, isStored := fields[1].(int64)
		possible := stored != 2 || x.ending != store.Abort
		if isEnd && isStored && possible && end >= 0 && end <= 2 && stored >= 0 && stored <= 2 {
			return store.ReleaseResult{Status: ends[end], Since: r.Sent, Record: fates[stored]}, nil
		}
	}
	return store.ReleaseResult{}, command.UnexpectedReply(r.Value)
}

// fates are what the numbers stand for that finish.lua answers second.
var fates = [...]store.RecordStatus{store.NotStored, store.WasStored, store.Restored}

// decodeResolve reads the answer of resolve.lua.
func decodeResolve(r pipeline.Reply) (running bool, err error) {
	if r.Err != nil {
		return false, r.Err
	}
	number, isNumber := r.Value.(int64)
	if !isNumber || number < 0 || number > 2 {
		return false, command.UnexpectedReply(r.Value)
	}
	return number == 2, nil
}
