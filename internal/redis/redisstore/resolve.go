package redisstore

import (
	"errors"
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
	"github.com/reqlock/reqlock/internal/redis/pipeline"
	"github.com/reqlock/reqlock/internal/redis/script"
	"github.com/reqlock/reqlock/internal/store"
)

// Resolve runs resolve.lua. A record that is kept has to be acknowledged by replicas, as that
// of a commit.
func (s *Store) Resolve(r store.ResolveRequest, done func(store.ResolveStatus, error)) {
	t := &resolveOp{done: done, resolution: r.Resolution}
	t.init(s, t, store.Target{Key: r.Key, Bound: r.Bound}, false, len(r.Record))
	t.encodeScriptOf(&s.scripts.Resolve, r.Lock)
	t.encodeKey(&t.record, keyspace.RecordSuffix)
	seen := r.Seen
	if r.Token != "" {
		seen = script.Digest(r.Token)
	}
	t.args = append(t.args, seen, resolutionArgs[r.Resolution])
	class := pipeline.Release
	if r.Resolution.Keeps() {
		class = pipeline.Commit
	}
	if r.Resolution != store.NoteReported {
		t.args = append(t.args, t.keep.setInt(r.Keep.Milliseconds()))
	}
	if r.Resolution == store.ResolveAnswered {
		t.args = append(t.args, t.result.setBytes(r.Record))
	}
	s.pipeline.Do(&t.Call, class)
}

// resolutionArgs are the resolutions as resolve.lua expects them.
var resolutionArgs = [...]string{store.ResolveNotDone: "F", store.ResolveDone: "U", store.ResolveAnswered: "D", store.NoteReported: "N"}

// resolveOp is a Resolve. It is not pooled, because few requests need it.
type resolveOp struct {
	operation
	done       func(store.ResolveStatus, error)
	resolution store.Resolution
}

// errOtherSend is why the result of a Resolve is unknown although a send has a reply.
var errOtherSend = errors.New("the reply to another send of the command is missing")

// Settle delivers the result. If a send finds no record to forget, the other send may have
// deleted it. Otherwise the other send may have been executed before another attempt began, or it
// may be executed later: the attempt that was seen may die, or begin again.
func (t *resolveOp) Settle(got pipeline.Reply, uncertain bool) {
	status, err := decodeResolve(got)
	switch {
	case err != nil:
		t.done(store.NoRecord, command.NewFault(err, uncertain))
		return
	case status == store.Resolved && got.Unconfirmed != nil:
		t.done(store.NoRecord, command.NewFault(got.Unconfirmed, true))
		return
	case status == store.NoRecord && uncertain && t.resolution == store.ResolveNotDone:
		status = store.Resolved
	case status != store.Resolved && uncertain:
		t.done(store.NoRecord, command.NewFault(errOtherSend, true))
		return
	}
	t.done(status, nil)
}

// Late does nothing: a late reply changes nothing for the caller.
func (t *resolveOp) Late(pipeline.Reply) {}

// Free does nothing.
func (t *resolveOp) Free() {}

// decodeResolve decodes the reply of resolve.lua.
func decodeResolve(r pipeline.Reply) (store.ResolveStatus, error) {
	if r.Err != nil {
		return store.NoRecord, r.Err
	}
	number, isNumber := r.Value.(int64)
	if !isNumber || number < 0 || number >= int64(len(resolveCodes)) {
		return store.NoRecord, command.UnexpectedReply(r.Value)
	}
	return resolveCodes[number], nil
}

// resolveCodes are the meanings of the number that resolve.lua returns.
var resolveCodes = [...]store.ResolveStatus{store.NoRecord, store.Resolved, store.StillRunning, store.Changed}

// Outcome runs outcome.lua.
func (s *Store) Outcome(r store.OutcomeRequest, done func(store.Outcome, error)) {
	t := &outcomeOp{done: done}
	t.init(s, t, store.Target{Key: r.Key, Bound: r.Bound}, false, 0)
	t.encodeScriptOf(&s.scripts.Outcome, r.Lock)
	t.encodeKey(&t.record, keyspace.RecordSuffix)
	s.pipeline.Do(&t.Call, pipeline.Release)
}

// outcomeOp is an Outcome. It is not pooled.
type outcomeOp struct {
	operation
	done func(store.Outcome, error)
}

// Settle delivers the result.
func (t *outcomeOp) Settle(got pipeline.Reply, uncertain bool) {
	outcome, err := decodeOutcome(got)
	if err != nil {
		t.done(store.Outcome{}, command.NewFault(err, uncertain))
		return
	}
	t.done(outcome, nil)
}

// Late does nothing.
func (t *outcomeOp) Late(pipeline.Reply) {}

// Free does nothing.
func (t *outcomeOp) Free() {}

// attemptNameLen is the length of the name of an attempt, a SHA-1 in hex.
const attemptNameLen = 40

// decodeOutcome decodes the reply of outcome.lua.
func decodeOutcome(r pipeline.Reply) (store.Outcome, error) {
	if r.Err != nil {
		return store.Outcome{}, r.Err
	}
	fields, isList := r.Value.([]any)
	if isList && len(fields) == 0 {
		return store.Outcome{}, nil
	}
	if len(fields) == 7 {
		name, isName := fields[1].(string)
		number, isNumber := fields[2].(int64)
		pttl, isTime := fields[3].(int64)
		runs, isFlag := decodeFlag(fields[4])
		fingerprint, isText := fields[5].(string)
		state, isState := recordStateOf(fields[0], runs)
		first, isFirst := decodeFirst(fields[6:])
		isCounted := state == store.Running || state == store.Unknown
		if isName && isNumber && isTime && isFlag && isText && isState && isFirst && len(name) == attemptNameLen && (number > 0) == isCounted {
			left := max(0, time.Duration(pttl)*time.Millisecond)
			return store.Outcome{State: state, Attempt: name, Number: int(number), Left: left, Fingerprint: fingerprint, First: first}, nil
		}
	}
	return store.Outcome{}, command.UnexpectedReply(r.Value)
}

// recordStateOf returns the state that outcome.lua has found.
func recordStateOf(letter any, runs bool) (state store.RecordState, ok bool) {
	switch letter {
	case "R":
		if runs {
			return store.Running, true
		}
		return store.Unknown, true
	case "U":
		return store.WasDone, !runs
	case "D":
		return store.WasAnswered, !runs
	case "?":
		return store.Damaged, !runs
	default:
		return store.Absent, false
	}
}
