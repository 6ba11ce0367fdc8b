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

// A leg is what became of one send of a bid.
type leg struct {
	redistest.CutCommand
	broken bool // others of its batch were not heard
}

// A fate is what a bid may be told and have done, after its sends were cut.
type fate struct {
	text  string
	ran   bool // at all
	again bool // it is the second run that is told
}

// fates returns the fates that a bid may have after what became of those sends
// of it that were cut. One that comes after them is not, if there is a connection
// for it; where there may be none, fails is what is told then. The second send is
// the last one, but one that is told to goes on in other words.
//
// go-redis gives the error of the batch also to those commands that had a value.
// A refusal is no value, and is not told from what was not heard.
func (b *bid) fates(legs []leg, fails string) (possible []fate) {
	ran, unheard := false, 0
	for _, l := range legs {
		switch refused := isRefused(l.CutCommand); {
		case !l.Delivered || (refused && l.broken):
			unheard++
		case !refused && !strings.HasPrefix(l.Reply, "-NOSCRIPT"):
			return []fate{{b.says(ran, unheard > 0), true, ran}}
		}
		ran = ran || (l.Reply != "" && !strings.HasPrefix(l.Reply, "-NOSCRIPT"))
	}
	switch {
	case unheard == 2:
		return append(possible, fate{sayLost, ran, false})
	case unheard == 1 && fails != "":
		possible = append(possible, fate{fails, ran, false})
	}
	return append(possible, fate{b.says(ran, unheard > 0), true, ran})
}

// isRefused reports whether the send was a SET NX that set nothing, after which
// SET NX GET follows.
func isRefused(p redistest.CutCommand) bool {
	return p.Command[0] == "SET" && strings.HasPrefix(p.Reply, "_") &&
		!slices.ContainsFunc(p.Command, func(word string) bool { return strings.EqualFold(word, "get") })
}

// says returns what a run of the bid is told. It is unsure if there is a send of
// which nothing is known.
func (b *bid) says(again, unsure bool) string {
	text := b.want
	if again && b.again != "" {
		text = b.again
	}
	if !unsure {
		return text
	}
	if text == sayWrongType {
		return sayWrongType + ", unknown"
	}
	return strings.Replace(text, sayNotOurs, "unsure", 1)
}

// keyOf returns the key of the bid whose command this is, or "".
func keyOf(command []string) string {
	i := slices.IndexFunc(command, func(arg string) bool { return strings.HasPrefix(arg, "p:x") })
	if i < 0 {
		return ""
	}
	return strings.TrimPrefix(command[i], "p:")
}

// check fails the test unless what the bid was told, and the state that it left,
// are those of one of its fates.
func (r *ring) check(t *testing.T, b *bid, fates []fate, got told, asked time.Time, q *storetest.AnyRequest, found storetest.State) {
	t.Helper()
	i := slices.IndexFunc(fates, func(f fate) bool { return f.text == got.text })
	if i < 0 {
		t.Errorf("%s is told %q, want one of %+v", b.key, got.text, fates)
		return
	}
	if took := got.at.Sub(asked); took > q.Bound {
		t.Errorf("%s is told after %v", b.key, took)
	}
	if got.text == sayLost || got.text == r.fails {
		r.lost++
	}
	f, want := fates[i], withTokens(b.before, q)
	if f.ran {
		want = withTokens(b.after, q)
	}
	if found.Value != want.Value || (found.Value != "" && !storetest.IsTTL(found.TTL, want.TTL)) ||
		!slices.Equal(found.Queue, want.Queue) || (len(found.Queue) > 0 && !storetest.IsTTL(found.QueueTTL, storetest.QueueTTL)) ||
		!maps.Equal(found.Record, want.Record) || (len(found.Record) > 0 && !storetest.IsTTL(found.RecordTTL, want.RecordLife())) {
		t.Errorf("%s, told %q, leaves %v, want %v", b.key, got.text, found, want)
	}
	holds := strings.HasPrefix(got.text, "granted") || strings.HasPrefix(got.text, "held, ")
	if (holds || got.text == "kept") && (got.since.Before(asked) || got.since.After(got.at)) {
		t.Errorf("%s: the lease counts from %v, asked for at %v and told at %v", b.key, got.since, asked, got.at)
	}
	if f.again && got.text == sayTaken && got.since.After(r.seen) {
		t.Errorf("%s: the lease counts from %v after the send that took the key", b.key, got.since.Sub(r.seen))
	}
	switch numbered := holds && b.fences > 0; {
	case numbered != (got.fences.count > 0):
		t.Errorf("%s, told %q, has the numbers %+v", b.key, got.text, got.fences)
	case numbered && got.fences.first <= r.fences[b.key]:
		t.Errorf("%s: the numbers begin with %d after %d", b.key, got.fences.first, r.fences[b.key])
	case numbered:
		r.fences[b.key] = got.fences.end()
	}
}

// put puts the states into the server that the bids find. What else there may
// be of earlier rounds is gone, apart from the fences.
func (r *ring) put(t *testing.T, requests []storetest.AnyRequest) {
	t.Helper()
	pipe := r.direct.TxPipeline()
	pipe.Del(t.Context(), "p:gate", "{p:gate}:r", "p:fresh")
	for i, b := range r.bids {
		lock, line, record := "p:"+b.key, "{p:"+b.key+"}:q", "{p:"+b.key+"}:r"
		pipe.Del(t.Context(), lock, line, record)
		switch s := withTokens(b.before, &requests[i]); s.Value {
		case "":
		case aList:
			pipe.RPush(t.Context(), lock, "x")
		default:
			pipe.Set(t.Context(), lock, s.Value, s.TTL)
		}
		for _, token := range withTokens(b.before, &requests[i]).Queue {
			pipe.RPush(t.Context(), line, token)
		}
		pipe.PExpire(t.Context(), line, storetest.QueueTTL)
		if s := withTokens(b.before, &requests[i]); s.Record != nil {
			pipe.HSet(t.Context(), record, s.Record)
			pipe.PExpire(t.Context(), record, s.RecordLife())
		}
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// look returns the states that the bids have left.
func (r *ring) look(t *testing.T) []storetest.State {
	t.Helper()
	pipe := r.direct.Pipeline()
	values := make([]*redis.StringCmd, len(r.bids))
	lines := make([]*redis.StringSliceCmd, len(r.bids))
	records := make([]*redis.MapStringStringCmd, len(r.bids))
	lives := make([][3]*redis.DurationCmd, len(r.bids))
	for i, b := range r.bids {
		lock, line, record := "p:"+b.key, "{p:"+b.key+"}:q", "{p:"+b.key+"}:r"
		values[i], lines[i] = pipe.Get(t.Context(), lock), pipe.LRange(t.Context(), line, 0, -1)
		records[i] = pipe.HGetAll(t.Context(), record)
		for j, key := range [...]string{lock, line, record} {
			lives[i][j] = pipe.PTTL(t.Context(), key)
		}
	}
	if _, err := pipe.Exec(t.Context()); err != nil && command.IsTransport(err) {
		t.Fatal(err)
	}
	left := make([]storetest.State, len(r.bids))
	for i := range left {
		left[i] = storetest.State{
			Value: values[i].Val(), TTL: lives[i][0].Val(),
			Queue: lines[i].Val(), QueueTTL: lives[i][1].Val(),
			Record: records[i].Val(), RecordTTL: lives[i][2].Val(),
		}
		if err := values[i].Err(); err != nil && strings.HasPrefix(err.Error(), sayWrongType) {
			left[i].Value = aList
		}
	}
	return left
}
