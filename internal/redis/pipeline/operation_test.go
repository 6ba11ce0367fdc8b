package pipeline

import (
	"errors"
	"strings"
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/script"
	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// A testOperation is the Operation of one transition.
type testOperation[A any] struct {
	Call
	store   *testStore
	request storetest.AnyRequest
	source  any // of the script; nil for SET
	args    []any
	done    func(A, error)
	decode  func(got Reply, token string, begun time.Time) (A, error)
}

func newOperation[A any](s *testStore, r *storetest.AnyRequest, done func(A, error), decode func(Reply, string, time.Time) (A, error)) *testOperation[A] {
	o := &testOperation[A]{store: s, request: *r, done: done, decode: decode}
	o.Begin(o, r.Bound, len(r.Record), r.Inline)
	o.Key = []byte(s.names.Lock(r.Key))
	return o
}

func (o *testOperation[A]) setScript(s script.Script, suffixes []string, args ...any) {
	lock := string(o.Key)
	o.source, o.args = s.Source, []any{"evalsha", s.SHA, 1 + len(suffixes), lock}
	for _, suffix := range suffixes {
		o.args = append(o.args, o.store.names.Companion(lock, suffix))
	}
	o.args = append(o.args, args...)
}

func (o *testOperation[A]) Command(sends int) command.Command {
	switch {
	case o.source != nil:
		return command.New(3, o.args)
	case sends > 1:
		return command.New(1, o.args)
	}
	first := &command.SetNX{}
	first.Reset(o.args[:len(o.args)-1])
	return first
}

func (o *testOperation[A]) Fallback(sent command.Command, got Reply, sends int) command.Command {
	switch {
	case got.Err != nil && o.source != nil && strings.HasPrefix(got.Err.Error(), "NOSCRIPT"):
		return command.New(3, append([]any{"eval", o.source}, sent.Args()[2:]...))
	case got.Err == nil && got.Value == command.WasSet(false) && (sends > 1 || o.request.WithHolder):
		return command.New(1, o.args)
	default:
		return nil
	}
}

func (o *testOperation[A]) Settle(got Reply, uncertain bool) {
	answer, err := o.decode(got, o.request.Token, o.Begun)
	if err != nil {
		err = command.NewFault(err, uncertain)
	}
	if released, ok := any(&answer).(*store.ReleaseResult); ok && released.Status == store.NotHeld && uncertain {
		released.Status = store.Unsure
	}
	o.done(answer, err)
}

func (o *testOperation[A]) Late(got Reply) {
	answer, err := o.decode(got, o.request.Token, o.Begun)
	if grant, ok := any(answer).(store.Answer); ok && err == nil && grant.Granted {
		o.store.lateGrant(o.request.Key, o.request.Token)
	}
}

func (o *testOperation[A]) Free() {}

var errAnswer = errors.New("unexpected reply")

func decodeTake(got Reply, token string, begun time.Time) (store.Answer, error) {
	switch value := got.Value.(type) {
	case command.WasSet:
		return store.Answer{Granted: bool(value), Since: got.Sent}, got.Err
	case command.NilReply:
		return store.Answer{Granted: true, Since: got.Sent}, got.Err
	case string:
		return store.Answer{Granted: value == token, Holder: value, Since: begun}, got.Err
	}
	return store.Answer{}, errors.Join(got.Err, missing(got))
}

func decodeEnqueue(got Reply, _ string, _ time.Time) (store.Answer, error) {
	fields, _ := got.Value.([]any)
	if len(fields) == 0 {
		return store.Answer{}, errors.Join(got.Err, missing(got))
	}
	return store.Answer{Granted: fields[0] == int64(1), Since: got.Sent}, nil
}

func decodeRenew(got Reply, _ string, _ time.Time) (store.Renewal, error) {
	fields, _ := got.Value.([]any)
	if len(fields) == 0 {
		return store.Renewal{}, errors.Join(got.Err, missing(got))
	}
	return store.Renewal{Held: fields[0] == int64(1), Since: got.Sent}, nil
}

func decodeRelease(got Reply, _ string, _ time.Time) (store.ReleaseResult, error) {
	released := store.ReleaseResult{Since: got.Sent}
	value := got.Value
	if fields, ok := value.([]any); ok && len(fields) == 2 {
		value = fields[0]
		released.Record = [...]store.RecordStatus{store.NotStored, store.WasStored, store.Restored}[fields[1].(int64)]
	}
	number, ok := value.(int64)
	if !ok {
		return store.ReleaseResult{}, errors.Join(got.Err, missing(got))
	}
	released.Status = [...]store.ReleaseStatus{store.NotHeld, store.Freed, store.Handed, store.Kept}[number]
	return released, nil
}

// missing returns errAnswer if the reply has no error.
func missing(got Reply) error {
	if got.Err != nil {
		return nil
	}
	return errAnswer
}

func flag(isSet bool) int {
	if isSet {
		return 1
	}
	return 0
}
