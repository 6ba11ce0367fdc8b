package redisstore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/pipeline"
	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

func TestRemainingTimeIsAnUpperBound(t *testing.T) {
	t.Parallel()
	for pttl, want := range map[int64]time.Duration{0: time.Millisecond, 1: 2 * time.Millisecond, -1: -1} {
		answer, err := decodeEnqueue(pipeline.Reply{Value: []any{int64(0), "other", pttl, int64(0)}}, operationFor(storetest.Request(storetest.Me1)))
		if err != nil || answer.Remaining != want {
			t.Errorf("PTTL %d: %v, %v", pttl, answer.Remaining, err)
		}
	}
}

// operationFor returns the operation that a request would start.
func operationFor(r storetest.AnyRequest) *operation {
	return &operation{
		store: &Store{},
		details: details{
			target: r.Target(), withHolder: r.WithHolder, fences: r.Fences, attempt: r.Attempt, rejoin: r.Rejoin,
			ending: r.Release().Ending,
		},
		Call: pipeline.Call{Begun: time.Now()},
	}
}

func TestUnexpectedRepliesAreFaults(t *testing.T) {
	t.Parallel()
	plain, fenced, rejoins := storetest.Request(storetest.Me1), storetest.Request(storetest.Me1), storetest.Request(storetest.Me1)
	fenced.Fences = 8
	rejoins.Rejoin = storetest.Me2
	first, anew, aborts, commits := storetest.AttemptRequest(storetest.Me1), storetest.AttemptRequest(storetest.Me1), storetest.AttemptRequest(storetest.Me1), storetest.AttemptRequest(storetest.Me1)
	anew.Attempt.Rerun = true
	commits.Ending = store.EndCommit
	list := func(fields ...any) any { return fields }
	const no, yes, two, three = int64(0), int64(1), int64(2), int64(3)
	mustReject := func(name string, r storetest.AnyRequest, values ...any) {
		t.Helper()
		for _, value := range values {
			var err error
			switch name {
			case "take":
				_, err = decodeTake(pipeline.Reply{Value: value}, operationFor(r))
			case "enqueue":
				_, err = decodeEnqueue(pipeline.Reply{Value: value}, operationFor(r))
			case "renew":
				_, err = decodeRenew(pipeline.Reply{Value: value}, operationFor(r))
			case "release":
				_, err = decodeRelease(pipeline.Reply{Value: value}, operationFor(r))
			case "keep":
				_, err = decodeKeep(pipeline.Reply{Value: value}, operationFor(r))
			case "withdraw":
				_, err = decodeWithdraw(pipeline.Reply{Value: value}, operationFor(r))
			case "begin":
				_, err = decodeBegin(pipeline.Reply{Value: value}, operationFor(r))
			case "finish":
				_, err = decodeFinish(pipeline.Reply{Value: value}, operationFor(r))
			case "resolve":
				_, err = decodeResolve(pipeline.Reply{Value: value})
			case "outcome":
				_, err = decodeOutcome(pipeline.Reply{Value: value})
			}
			fault := command.NewFault(err, false)
			var unexpected *command.UnexpectedReplyError
			if !errors.As(err, &unexpected) || !fault.Unknown || fault.Temporary || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %v: %v", name, value, err)
			}
		}
	}
	mustReject("take", plain, nil, yes, list("secret"), true)
	invalid := []any{
		nil, "OK", yes, list(), list(yes), list(yes, no), list(yes, no, no), list(yes, no, no, no, no, no), list(two, no, no, no),
		list(yes, "secret", no, no), list(yes, no, "secret", no), list(yes, no, no, "secret"), list(yes, int64(-2), no, no),
		list("1", no, no, no), list(true, no, no, no), list(list(), list(), list(), list()),
	}
	mustReject("enqueue", plain, invalid...)
	mustReject("renew", plain, invalid...)
	const seven, nine = int64(7), int64(9)
	mustReject("enqueue", plain, list(yes, int64(-1), no, no), list(yes, no, seven, no), list(yes, no, no, seven), list(yes, no, seven, seven))
	mustReject("renew", plain, list(yes, no, seven, seven), list(yes, int64(-1), seven, seven), list(yes, int64(-1), no))
	invalidFences := []any{
		list(yes, no, no, no), list(yes, no, no, yes), list(yes, no, seven, no), list(yes, no, seven), list(yes, no, seven, "secret"),
		list(yes, no, -seven, yes), list(yes, no, seven, -seven), list(yes, no, seven, nine), // 8 were wanted
	}
	mustReject("enqueue", fenced, invalidFences...)
	mustReject("renew", fenced, append(invalidFences, list(yes, int64(-1), no, no))...)
	mustReject("enqueue", plain,
		list(no), list(no, "x", no), list(no, no, "secret", no), list(no, no, no, no), list(no, "x", "secret", no), list(no, "x", no, two), list(no, "x", no, "1"),
		list(no, storetest.Me1, no, no), // the holder is the token of the request
	)
	mustReject("renew", plain, list(no, no), list("secret"))
	mustReject("release", plain, nil, "secret", list(), list(yes), int64(-1), int64(4), three, true)
	mustReject("release", rejoins, yes)
	mustReject("keep", plain, nil, two, three)
	mustReject("withdraw", plain, nil, "secret", int64(-1), three)
	mustReject("begin", first, invalid...)
	mustReject("begin", first,
		list(yes, no, no, no, "1"), list(yes, no, no, no, int64(-1)), list(yes, no, seven, yes, yes), list(yes, no, no, yes, yes),
		list(yes, no, no, no, no), list(yes, no, no, no, yes, yes),
		list(no, "x", no, no), list(no, "x", no, no, two), list(no, "x", no, two, no), list(no, storetest.Me1, no, no, no),
		list(two), list(two, nil), list(two, no), list(two, "secret", no), list(yes, "secret"), list("2", "secret"),
		list(three, no), list(int64(6)), list(int64(7)), list("3"), three, "secret",
	)
	mustReject("begin", first,
		list(no, "x", no, no, no, no), list(no, "x", no, no, yes, "secret", "secret"), list(two, "secret", "secret", "secret"), list(three, "secret", "secret"),
		list(int64(5), ""), list(int64(5), nameOf(storetest.Bob1), "secret", "secret"), list(int64(6), "secret"),
	)
	mustReject("begin", first, list(int64(5), "secret"), list(int64(5), no), list(int64(5), nameOf(storetest.Bob1), no))
	mustReject("begin", anew, list(int64(5)), list(int64(5), nameOf(storetest.Bob1)))
	mustReject("finish", commits,
		nil, "secret", yes, list(), list(yes), list(yes, yes, yes), list("1", yes), list(yes, "secret"),
		list(three, yes), list(int64(-1), yes), list(yes, three), list(yes, int64(-1)), list(true, yes),
	)
	mustReject("finish", aborts, list(yes, two))
	mustReject("resolve", first, nil, "secret", list(), list(yes), int64(-1), int64(4), true)
	name, f := nameOf(storetest.Bob1), "print"
	mustReject("outcome", first,
		nil, "secret", yes, list(yes), list("D", name, no, yes, no), list("D", name, no, yes, no, no, f), list("D", name, no, yes, no, f), list("D", name, no, yes, no, f, no), list("D", name, no, yes, no, f, f, f),
		list("R", name, yes, yes), list("A", name, no, yes, no, f, f), list(no, name, yes, yes, no, f, f),
		list("D", name, "secret", yes, no, f, f), list("D", name, no, "secret", no, f, f), list("D", name, no, yes, two, f, f), list("D", "secret", no, yes, no, f, f),
		list("R", "secret", yes, yes, no, f, f), list("R", no, yes, yes, no, f, f), list("R", name, "secret", yes, no, f, f),
		list("R", name, yes, "secret", no, f, f), list("R", name, yes, yes, two, f, f), list("R", name, no, yes, no, f, f),
		list("D", name, yes, yes, no, f, f), list("D", name, no, yes, yes, f, f), list("U", name, no, yes, yes, f, f), list("?", name, no, yes, yes, f, f),
	)
}

// The reply that shared leases are out makes no sense to the scripts that follow it.
func TestSharedScriptIsNotFollowedByItself(t *testing.T) {
	t.Parallel()
	s := newStore(t, redistest.Reuse(t).Client(t))
	x := &operation{store: s.Store, arguments: arguments{script: &s.scripts.SharedAsk}}
	for text, want := range map[any]bool{x.script.SHA: false, x.script.Source: false, s.scripts.Enqueue.SHA: true} {
		if got := x.useSharedScript(command.New(1, []any{"evalsha", text})); got != want {
			t.Errorf("%.20v: %t", text, got)
		}
	}
}

// A reply of resolve.lua says what became of the record. It does not always say what another send
// without a reply has done, or will do.
func TestResolveAfterAnotherSendWithoutReply(t *testing.T) {
	t.Parallel()
	unknown := store.ResolveStatus(-1)
	for _, resolution := range []store.Resolution{store.ResolveNotDone, store.ResolveDone, store.ResolveAnswered} {
		want := map[store.ResolveStatus]store.ResolveStatus{
			store.NoRecord: unknown, store.Resolved: store.Resolved, store.StillRunning: unknown, store.Changed: unknown,
		}
		if resolution == store.ResolveNotDone {
			want[store.NoRecord] = store.Resolved
		}
		for reply, status := range resolveCodes {
			op := &resolveOp{resolution: resolution}
			for uncertain, want := range map[bool]store.ResolveStatus{false: status, true: want[status]} {
				op.done = func(got store.ResolveStatus, err error) {
					var fault *store.Fault
					if errors.As(err, &fault) && fault.Unknown {
						got = unknown
					}
					if got != want {
						t.Errorf("resolution %v, reply %d, uncertain %t: got %v, %v, want %v", resolution, reply, uncertain, got, err, want)
					}
				}
				op.Settle(pipeline.Reply{Value: int64(reply)}, uncertain)
			}
		}
	}
}

// Any program may lock a key with any value. A value that only resembles the marker of shared
// leases is the holder.
func TestValueThatIsNoMarkerIsTheHolder(t *testing.T) {
	t.Parallel()
	for holder, isShared := range map[string]bool{
		"shared 77 - 0":        true,
		"shared 77 A1/2 12345": true,

		"shared":             false,
		"shared ":            false,
		"shared lock":        false,
		"shared 77 - later":  false,
		"shared many - 0":    false,
		"shared 77  0":       false,
		"shared  - 0":        false,
		"shared 77 - ":       false,
		"shared 77 - 0 more": false,
		"77 - 0":             false,
		"Shared 77 - 0":      false,
	} {
		got := hideMarker(store.Answer{Holder: holder, ForeignHolder: true})
		hasHolder := got.Holder == holder && got.ForeignHolder
		if got.Shared != isShared || hasHolder == isShared || isShared && got.Holder != "" {
			t.Errorf("%q: %+v", holder, got)
		}
	}
}

// restores is a hook that replies to each command that an attempt has restored its record.
type restores struct{ storetest.OpenCircuit }

func (restores) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		cmd.(*command.Generic).SetVal([]any{int64(1), int64(2)}) //nolint:forcetypeassert // as the store sends it
		return nil
	}
}

// A commit may restore the record. An abort does not, so such a reply to it is an error.
func TestReplyIsDecodedByTheEnding(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	rdb.AddHook(restores{})
	s := newStore(t, rdb)
	r := storetest.AttemptRequest(storetest.Me1)
	r.Ending = store.EndCommit
	if got, err := s.Release(t.Context(), r); err != nil || got.Record != store.Restored {
		t.Errorf("commit: %+v, %v", got, err)
	}
	r.Ending = store.EndAbort
	var unexpected *command.UnexpectedReplyError
	if got, err := s.Release(t.Context(), r); !errors.As(err, &unexpected) {
		t.Errorf("abort: %+v, %v", got, err)
	}
}
