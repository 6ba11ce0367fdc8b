package redisstore

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// A cutSend is one send of a cutCase.
type cutSend struct {
	redistest.CutCommand
	broken bool // a reply of its batch was not delivered
}

// An expectation is an answer that a cutCase may have, and what the server has done then.
type expectation struct {
	text  string
	ran   bool // the command has run at least once
	again bool // the answer is that to the second run
}

// expected returns the answers that are possible after these sends. A send after them succeeds
// if there is a connection for it. If there may be none, fails is the answer then. The second
// send is the last one, but a Fallback may follow it.
//
// go-redis gives the error of the batch also to commands with a value in their replies. The reply
// to a refused SET NX has no value, so it cannot be distinguished from a missing reply.
func (c *cutCase) expected(sends []cutSend, fails string) (possible []expectation) {
	ran, undelivered := false, 0
	for _, send := range sends {
		switch refused := isRefused(send.CutCommand); {
		case !send.Delivered || (refused && send.broken):
			undelivered++
		case !refused && !strings.HasPrefix(send.Reply, "-NOSCRIPT"):
			return []expectation{{c.answer(ran, undelivered > 0), true, ran}}
		}
		ran = ran || (send.Reply != "" && !strings.HasPrefix(send.Reply, "-NOSCRIPT"))
	}
	switch {
	case undelivered == 2:
		return append(possible, expectation{textLost, ran, false})
	case undelivered == 1 && fails != "":
		possible = append(possible, expectation{fails, ran, false})
	}
	return append(possible, expectation{c.answer(ran, undelivered > 0), true, ran})
}

// isRefused reports whether the send was a SET NX that set nothing. SET NX GET follows it.
func isRefused(p redistest.CutCommand) bool {
	return p.Command[0] == "SET" && strings.HasPrefix(p.Reply, "_") &&
		!slices.ContainsFunc(p.Command, func(arg string) bool { return strings.EqualFold(arg, "get") })
}

// answer returns the answer to the first run or to a second one. unsure says that the outcome
// of another send is unknown.
func (c *cutCase) answer(again, unsure bool) string {
	text := c.want
	if again && c.again != "" {
		text = c.again
	}
	if !unsure {
		return text
	}
	if text == textWrongType {
		return textWrongType + ", unknown"
	}
	return strings.Replace(text, textNotOurs, "unsure", 1)
}

// keyOf returns the key of the cutCase that the command belongs to, or "".
func keyOf(command []string) string {
	i := slices.IndexFunc(command, func(arg string) bool { return strings.HasPrefix(arg, "p:x") })
	if i < 0 {
		return ""
	}
	return strings.TrimPrefix(command[i], "p:")
}

// check fails the test unless the answer and the state are those of one of the expectations.
func (r *cutFixture) check(t *testing.T, c *cutCase, possible []expectation, got result, asked time.Time, q *storetest.AnyRequest, found storetest.State) {
	t.Helper()
	i := slices.IndexFunc(possible, func(e expectation) bool { return e.text == got.text })
	if i < 0 {
		t.Errorf("%s: answer %q, want one of %+v", c.key, got.text, possible)
		return
	}
	// The bound is that of storetest.Request. A cut closes the connection, so the lane sends the
	// commands again, or fails them, at once: no request waits for half of its bound, after which the
	// lane would send it again by itself, or for its end. That is long even on a busy machine.
	if took := got.at.Sub(asked); took > q.Bound {
		t.Errorf("%s: answer after %v", c.key, took)
	}
	if got.text == textLost || got.text == r.fails {
		r.lost++
	}
	e, want := possible[i], withTokens(c.before, q)
	if e.ran {
		want = withTokens(c.after, q)
	}
	if !isValue(found.Value, want.Value) || !want.HasShared(found.Shared) || (found.Value != "" && !storetest.IsTTL(found.TTL, want.TTL)) ||
		!slices.Equal(found.Queue, want.Queue) || (len(found.Queue) > 0 && !storetest.IsTTL(found.QueueTTL, storetest.QueueTTL)) ||
		!maps.Equal(found.Record, want.Record) || (len(found.Record) > 0 && !storetest.IsTTL(found.RecordTTL, want.WantRecordTTL())) {
		t.Errorf("%s, answer %q: the state is %v, want %v", c.key, got.text, found, want)
	}
	holds := strings.HasPrefix(got.text, "granted") || strings.HasPrefix(got.text, "held, ")
	if (holds || got.text == "kept") && (got.since.Before(asked) || got.since.After(got.at)) {
		t.Errorf("%s: the lease counts from %v, requested at %v and answered at %v", c.key, got.since, asked, got.at)
	}
	if e.again && got.text == textTaken && got.since.After(r.seen) {
		t.Errorf("%s: the lease counts from %v after the send that took the key", c.key, got.since.Sub(r.seen))
	}
	switch numbered := holds && c.fences > 0; {
	case numbered != (got.fences.count > 0):
		t.Errorf("%s, answer %q: the fencing numbers are %+v", c.key, got.text, got.fences)
	case numbered && got.fences.first <= r.fences[c.key]:
		t.Errorf("%s: the fencing numbers begin with %d after %d", c.key, got.fences.first, r.fences[c.key])
	case numbered:
		r.fences[c.key] = got.fences.end()
	}
}

// isValue reports whether a lock may have this value.
func isValue(found, want string) bool {
	fields, isLikely := strings.CutPrefix(found, markerPrefix)
	return found == want || want == numbered && isLikely && isMarker(fields) && found != storetest.Marker
}

// put writes the states before the round to the server. It deletes all that earlier rounds have
// left, except the fences.
func (r *cutFixture) put(t *testing.T, requests []storetest.AnyRequest) {
	t.Helper()
	pipe := r.direct.TxPipeline()
	pipe.Del(t.Context(), "p:gate", "{p:gate}:r", "p:fresh")
	for i, c := range r.cases {
		lock, line, record, shared := "p:"+c.key, "{p:"+c.key+"}:q", "{p:"+c.key+"}:r", "{p:"+c.key+"}:s"
		pipe.Del(t.Context(), lock, line, record, shared)
		withTokens(c.before, &requests[i]).PutShared(t.Context(), pipe, shared)
		switch s := withTokens(c.before, &requests[i]); s.Value {
		case "":
		case aList:
			pipe.RPush(t.Context(), lock, "x")
		default:
			pipe.Set(t.Context(), lock, s.Value, s.TTL)
		}
		for _, token := range withTokens(c.before, &requests[i]).Queue {
			pipe.RPush(t.Context(), line, token)
		}
		pipe.PExpire(t.Context(), line, storetest.QueueTTL)
		if s := withTokens(c.before, &requests[i]); s.Record != nil {
			pipe.HSet(t.Context(), record, s.Record)
			pipe.PExpire(t.Context(), record, s.WantRecordTTL())
		}
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// states returns the states of the cases on the server.
func (r *cutFixture) states(t *testing.T) []storetest.State {
	t.Helper()
	pipe := r.direct.Pipeline()
	values := make([]*redis.StringCmd, len(r.cases))
	lines := make([]*redis.StringSliceCmd, len(r.cases))
	records := make([]*redis.MapStringStringCmd, len(r.cases))
	shared := make([]*redis.ZSliceCmd, len(r.cases))
	ttls := make([][3]*redis.DurationCmd, len(r.cases))
	for i, c := range r.cases {
		lock, line, record := "p:"+c.key, "{p:"+c.key+"}:q", "{p:"+c.key+"}:r"
		values[i], lines[i] = pipe.Get(t.Context(), lock), pipe.LRange(t.Context(), line, 0, -1)
		records[i] = pipe.HGetAll(t.Context(), record)
		shared[i] = pipe.ZRangeWithScores(t.Context(), "{p:"+c.key+"}:s", 0, -1)
		for j, key := range [...]string{lock, line, record} {
			ttls[i][j] = pipe.PTTL(t.Context(), key)
		}
	}
	if _, err := pipe.Exec(t.Context()); err != nil && command.IsTransport(err) {
		t.Fatal(err)
	}
	left := make([]storetest.State, len(r.cases))
	for i := range left {
		left[i] = storetest.State{
			Value: values[i].Val(), TTL: ttls[i][0].Val(),
			Queue: lines[i].Val(), QueueTTL: ttls[i][1].Val(),
			Record: records[i].Val(), RecordTTL: ttls[i][2].Val(),
			Shared: storetest.SharedOf(shared[i].Val()),
		}
		if err := values[i].Err(); err != nil && strings.HasPrefix(err.Error(), textWrongType) {
			left[i].Value = aList
		}
	}
	return left
}
