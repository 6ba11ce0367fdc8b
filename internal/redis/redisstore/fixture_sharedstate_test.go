package redisstore

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// A sharedState is the state of the lock k, and of its shared leases, as a text such as
//
//	shared 10 #77 C1@1 | C1 A2* | B1*=9 D1/2=-1
//
// The three parts are K, the queue and the set. Tokens are A1 for an exclusive one of the
// process A, A1* for a reader's, and A1/2 for one with the limit 2. "x!" is a value of a
// foreign client. Times are in minutes from now, so that a slow machine does not matter.
// Behind K is its TTL; of a marker, its number follows, and its head with the time until
// which the head keeps others waiting. K is "-" if there is no key.
type sharedState string

// tokenOf returns the token with this name.
func tokenOf(name string) string {
	if value, isForeign := strings.CutSuffix(name, "!"); isForeign {
		return value
	}
	limit, number, _ := parseName(name)
	return store.NewToken(processOf(name), limit, number)
}

// processOf returns the process of a token with this name.
func processOf(name string) string { return strings.Repeat(strings.ToLower(name[:1]), 32) }

func parseName(name string) (limit store.Limit, number uint64, err error) {
	digits := name[1:]
	if reader, isReader := strings.CutSuffix(digits, "*"); isReader {
		limit, digits = store.Unlimited, reader
	} else if permit, n, isPermit := strings.Cut(digits, "/"); isPermit {
		parsed, err := strconv.Atoi(n)
		if err != nil {
			return 0, 0, err
		}
		limit, digits = store.Limit(parsed), permit
	}
	number, err = strconv.ParseUint(digits, 10, 64)
	return limit, number, err
}

// tokenName returns the name of a token.
func tokenName(token string) string {
	process, limit, number, ok := store.ParseToken(token)
	if !ok || len(process) != len(storetest.Me) {
		return token + "!"
	}
	name := strings.ToUpper(process[:1]) + strconv.FormatUint(number, 10)
	switch limit {
	case store.Exclusive:
		return name
	case store.Unlimited:
		return name + "*"
	default:
		return fmt.Sprint(name, "/", int(limit))
	}
}

// minutes returns a time in ms as whole minutes.
func minutes(ms float64) string { return strconv.Itoa(int(math.Round(ms / 60_000))) }

// serverNow returns the time of the server that has the lock, in ms.
func serverNow(t *testing.T, rdb redis.UniversalClient) float64 {
	t.Helper()
	now, err := rdb.Eval(t.Context(), `local t = redis.call('TIME') return t[1] * 1000 + math.floor(t[2] / 1000)`, []string{storetest.LockName}).Int64()
	if err != nil {
		t.Fatal(err)
	}
	return float64(now)
}

// put replaces the keys of the lock by those of the state.
func (s sharedState) put(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	parts := strings.Split(string(s)+"||", "|")
	now := serverNow(t, rdb)
	at := func(text string) float64 {
		m, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		return now + m*60_000
	}
	pipe := rdb.TxPipeline()
	pipe.Del(t.Context(), storetest.LockName, storetest.QueueName, storetest.SharedName, storetest.FenceName, storetest.RecordName)
	if fields := strings.Fields(parts[0]); len(fields) > 1 {
		value := tokenOf(fields[0])
		if fields[0] == "shared" {
			number, head, until := "0", "-", 0.0
			for _, field := range fields[2:] {
				if name, m, isHead := strings.Cut(field, "@"); isHead {
					head, until = tokenOf(name), at(m)
				} else {
					number = field[1:]
				}
			}
			value = fmt.Sprintf("shared %s %s %.0f", number, head, until)
		}
		pipe.Set(t.Context(), storetest.LockName, value, time.Duration(at(fields[1])-now)*time.Millisecond)
	}
	for _, name := range strings.Fields(parts[1]) {
		pipe.RPush(t.Context(), storetest.QueueName, tokenOf(name))
		pipe.PExpire(t.Context(), storetest.QueueName, storetest.QueueTTL)
	}
	for _, lease := range strings.Fields(parts[2]) {
		name, m, _ := strings.Cut(lease, "=")
		pipe.ZAdd(t.Context(), storetest.SharedName, redis.Z{Score: at(m), Member: tokenOf(name)})
		pipe.PExpire(t.Context(), storetest.SharedName, time.Hour)
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// sharedStateOf returns the state that the server has. It fails the test if a key has no TTL.
func sharedStateOf(t *testing.T, rdb redis.UniversalClient) sharedState {
	t.Helper()
	now := serverNow(t, rdb)
	pipe := rdb.TxPipeline()
	value, ttl := pipe.Get(t.Context(), storetest.LockName), pipe.PTTL(t.Context(), storetest.LockName)
	queue, queueTTL := pipe.LRange(t.Context(), storetest.QueueName, 0, -1), pipe.PTTL(t.Context(), storetest.QueueName)
	leases, setTTL := pipe.ZRangeWithScores(t.Context(), storetest.SharedName, 0, -1), pipe.PTTL(t.Context(), storetest.SharedName)
	_, _ = pipe.Exec(t.Context())
	for _, lives := range []*redis.DurationCmd{ttl, queueTTL, setTTL} {
		if lives.Val() == -1 {
			t.Errorf("%v: the key has no TTL", lives.Args())
		}
	}
	text := "-"
	if value.Err() == nil {
		text = tokenName(value.Val()) + " " + minutes(float64(ttl.Val().Milliseconds()))
		if fields, isMarked := strings.CutPrefix(value.Val(), markerPrefix); isMarked {
			text = "shared " + minutes(float64(ttl.Val().Milliseconds())) + markerText(t, fields, now)
		}
	}
	text += " | "
	for _, token := range queue.Val() {
		text += tokenName(token) + " "
	}
	text += "| "
	for _, lease := range leases.Val() {
		text += tokenName(fmt.Sprint(lease.Member)) + "=" + minutes(lease.Score-now) + " "
	}
	return sharedState(strings.TrimSpace(text))
}

// markerText returns the number and the head of a marker, where it has them. A number that was
// reserved in the test is N.
func markerText(t *testing.T, fields string, now float64) (text string) {
	t.Helper()
	if !isMarker(fields) {
		t.Errorf("the marker is %q", fields)
		return ""
	}
	parts := strings.Fields(fields)
	if number, _ := strconv.ParseInt(parts[0], 10, 64); number > 1000 {
		text += " #N"
	} else if number > 0 {
		text += " #" + parts[0]
	}
	if parts[1] != "-" {
		until, _ := strconv.ParseFloat(parts[2], 64)
		text += " " + tokenName(parts[1]) + "@" + minutes(until-now)
	}
	return text
}

// checkLifeOfMarker fails the test unless a marker lives until the last lease ends. miniredis
// has no PEXPIRETIME.
func checkLifeOfMarker(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	value, _ := rdb.Get(t.Context(), storetest.LockName).Result()
	last := rdb.ZRangeWithScores(t.Context(), storetest.SharedName, -1, -1).Val()
	lock, err := rdb.PExpireTime(t.Context(), storetest.LockName).Result()
	if !strings.HasPrefix(value, markerPrefix) || err != nil {
		return
	}
	set := rdb.PExpireTime(t.Context(), storetest.SharedName).Val()
	if len(last) == 0 {
		t.Error("a marker without a lease")
		return
	}
	// A script may pause between its TIME and its SET, and put between its two commands. The ends
	// of the leases in a state are whole minutes apart.
	const late = 20 * time.Second
	ends := time.Duration(last[0].Score) * time.Millisecond
	if lock < ends || lock > ends+late || set < ends {
		t.Errorf("the last lease ends at %v, the marker at %v, and the set at %v", ends, lock, set)
	}
}
