package redisstore

import (
	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/pipeline"
	"github.com/reqlock/reqlock/internal/store"
)

// decodeBegin decodes the reply of begin.lua: a verdict, or the result of ask.lua with one
// more field. Behind it there may be the reference of another attempt.
func decodeBegin(r pipeline.Reply, x *operation) (store.Answer, error) {
	if r.Err != nil {
		return store.Answer{}, r.Err
	}
	fields, _ := r.Value.([]any)
	if answer, ok := decodeVerdict(fields, x.attempt.Rerun); ok {
		return answer, nil
	}
	if len(fields) > askFields {
		answer, ok := decodeAsk(fields[:askFields], r.Sent, x)
		first, isFirst := decodeFirst(fields[askFields+1:])
		if answer.First = first; ok && isFirst && decodeBegun(&answer, fields[askFields]) {
			return hideMarker(answer), nil
		}
	}
	return store.Answer{}, command.UnexpectedReply(r.Value)
}

// decodeVerdict decodes why there is nothing to run. An earlier attempt that died is a reason
// only if the request must not be run again. The code for an aborted attempt is no verdict,
// because no caller waits for the reply: see begin.lua.
func decodeVerdict(fields []any, rerun bool) (answer store.Answer, ok bool) {
	if len(fields) == 0 {
		return store.Answer{}, false
	}
	rest := fields[1:]
	switch fields[0] {
	case int64(2):
		if len(rest) == 0 {
			return store.Answer{}, false
		}
		record, isString := rest[0].(string)
		answer, ok, rest = store.Answer{Verdict: store.Done, Record: []byte(record)}, isString, rest[1:]
	case int64(3):
		answer, ok = store.Answer{Verdict: store.Unreplayable}, true
	case int64(4):
		answer, ok = store.Answer{Verdict: store.Mismatch}, true
	case int64(5):
		answer, ok = store.Answer{Verdict: store.Died}, !rerun
		if len(rest) > 0 {
			name, isString := rest[0].(string)
			answer.Unreported, rest = name, rest[1:]
			ok = ok && isString && (len(name) == attemptNameLen || name == "" && len(rest) > 0)
		}
	}
	first, isFirst := decodeFirst(rest)
	answer.First = first
	return answer, ok && isFirst
}

// decodeFirst decodes the end of a reply, which may be the reference of an attempt. It ignores a text that
// cannot be one, because another client may have changed the record.
func decodeFirst(rest []any) (first string, ok bool) {
	if len(rest) == 0 {
		return "", true
	}
	first, ok = rest[0].(string)
	if !store.IsReference(first) {
		first = ""
	}
	return first, ok && len(rest) == 1
}

// decodeBegun decodes the field that begin.lua adds to the result of ask.lua: the number of
// the attempt if the lock was granted, otherwise whether another attempt runs.
func decodeBegun(answer *store.Answer, field any) (ok bool) {
	if !answer.Granted {
		answer.Running, ok = decodeFlag(field)
		return ok
	}
	number, isNumber := field.(int64)
	answer.Number = int(number)
	return isNumber && number > 0
}

// decodeFinish decodes the reply of finish.lua. No token rejoins, so the lock is never kept.
// An abort restores no record.
func decodeFinish(r pipeline.Reply, x *operation) (store.ReleaseResult, error) {
	if r.Err != nil {
		return store.ReleaseResult{}, r.Err
	}
	fields, _ := r.Value.([]any)
	if len(fields) == 2 {
		status, isStatus := fields[0].(int64)
		record, isRecord := fields[1].(int64)
		possible := record != 2 || x.ending != store.EndAbort
		if isStatus && isRecord && possible && status >= 0 && status <= 2 && record >= 0 && record <= 2 {
			return store.ReleaseResult{Status: releaseCodes[status], Since: r.Sent, Record: recordCodes[record]}, nil
		}
	}
	return store.ReleaseResult{}, command.UnexpectedReply(r.Value)
}

// recordCodes are the meanings of the second number that finish.lua returns.
var recordCodes = [...]store.RecordStatus{store.NotStored, store.WasStored, store.Restored}
