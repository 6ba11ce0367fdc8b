package redisstore

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// A scene is the state of the lock k, and of its shared leases, as a text such as
//
//	shared 10 #77 C1@1 | C1 A2* | B1*=9 D1/2=-1
//
// The three parts are K, the queue and the set. Tokens are A1 for an exclusive one of the
// process A, A1* for a reader's, and A1/2 for one with the limit 2. "x!" is a value of a
// foreign client. Times are in minutes from now, so that a slow machine does not matter.
// Behind K is its TTL; of a marker, its number follows, and its head with the time until
// which the head keeps others waiting. K is "-" if there is no key.
type scene string

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

// put replaces the keys of the lock by the scene.
func (s scene) put(t *testing.T, rdb redis.UniversalClient) {
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

// sceneOf returns the scene that the server has. It fails the test if a key has no TTL.
func sceneOf(t *testing.T, rdb redis.UniversalClient) scene {
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
	return scene(strings.TrimSpace(text))
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

// These are the times of the requests of a scene.
const (
	sceneTTL   = 10 * time.Minute
	sceneClaim = time.Minute
)

// sceneRequest returns a request for the lock with this token.
func sceneRequest(name string) storetest.AnyRequest {
	limit, _, _ := parseName(name)
	r := storetest.Request(tokenOf(name))
	r.Limit, r.TTL, r.Claim = limit, sceneTTL, sceneClaim
	return r
}

// A sceneCall runs a transition and returns the result as a text.
type sceneCall func(*testing.T, *syncStore) string

// asks returns the call of an ask of the token. Its words may be "try", which does not join
// the queue, and "number", which wants fencing numbers.
func asks(name string, words ...string) sceneCall {
	return func(t *testing.T, s *syncStore) string {
		t.Helper()
		r := sceneRequest(name)
		for _, word := range words {
			r.Join = r.Join && word != "try"
			if word == "number" {
				r.Fences = 8
			}
		}
		got, err := s.Enqueue(t.Context(), r)
		return answerText(t, got, err)
	}
}

// takes returns the call of a take of the token.
func takes(name string) sceneCall {
	return func(t *testing.T, s *syncStore) string {
		t.Helper()
		got, err := s.Take(t.Context(), sceneRequest(name))
		return answerText(t, got, err)
	}
}

// begins returns the call that begins an attempt.
func begins(name string) sceneCall {
	return func(t *testing.T, s *syncStore) string {
		t.Helper()
		r := sceneRequest(name)
		r.Attempt = storetest.AttemptRequest("").Attempt
		got, err := s.Enqueue(t.Context(), r)
		return answerText(t, got, err)
	}
}

// commits returns the call that commits an attempt.
func commits(name string) sceneCall {
	return func(t *testing.T, s *syncStore) string {
		t.Helper()
		r := sceneRequest(name)
		r.Attempt, r.Ending, r.Record = storetest.AttemptRequest("").Attempt, store.Commit, []byte(storetest.Record)
		got, err := s.Release(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return statusNames[got.Status]
	}
}

func answerText(t *testing.T, got store.Answer, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	left := minutes(float64(got.Remaining.Milliseconds()))
	switch {
	case got.Granted && got.Fences > 0:
		number := "N"
		if got.Fence < 1000 {
			number = strconv.FormatInt(got.Fence, 10)
		}
		return fmt.Sprintf("granted, %d waiting, number %s", got.Waiting, number)
	case got.Granted:
		return fmt.Sprintf("granted, %d waiting", got.Waiting)
	case got.Shared && got.Holder == "" && !got.ForeignHolder:
		return "shared, " + left
	case got.ForeignHolder:
		return fmt.Sprintf("foreign %s, %s", tokenName(got.Holder), left)
	default:
		return fmt.Sprintf("held by %s, %s", tokenName(got.Holder), left)
	}
}

var statusNames = map[store.ReleaseStatus]string{
	store.NotHeld: "not held", store.Freed: "freed", store.Handed: "handed", store.Kept: "kept", store.Unsure: "unsure",
}

// releases returns the call of a release. rejoin is the token that rejoins, or "".
func releases(name, rejoin string) sceneCall {
	return func(t *testing.T, s *syncStore) string {
		t.Helper()
		r := sceneRequest(name)
		if rejoin != "" {
			r.Rejoin = tokenOf(rejoin)
		}
		got, err := s.Release(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return statusNames[got.Status]
	}
}

// renews returns the call of a renewal that wants so many fencing numbers.
func renews(name string, numbers int) sceneCall {
	return func(t *testing.T, s *syncStore) string {
		t.Helper()
		r := sceneRequest(name)
		r.Fences = numbers
		got, err := s.Renew(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if !got.Held {
			return "lost"
		}
		if (got.Fence > 0) != (numbers > 0) || got.Fences != min(numbers, 1) {
			t.Errorf("%d fencing numbers from %d on", got.Fences, got.Fence)
		}
		return fmt.Sprintf("held, %d waiting", got.Waiting)
	}
}

// A sceneTest runs its call twice.
type sceneTest struct {
	name      string
	before    scene
	listening string // the processes that subscribe
	do        sceneCall
	first     string
	second    string // "" is the same as first
	after     scene
	hints     string // the tokens, sorted by process
}

// check runs the call twice, and fails the test unless the answers, the scene and the hints
// are those of the test.
func (test *sceneTest) check(t *testing.T, rdb redis.UniversalClient, s *syncStore) {
	t.Helper()
	test.before.put(t, rdb)
	var processes []string
	for name := range strings.FieldsSeq(test.listening) {
		processes = append(processes, processOf(name))
	}
	log := subscribeInMode(t, rdb, s.subscriber.Mode().(string), processes...)
	for i, want := range []string{test.first, cmp.Or(test.second, test.first)} {
		if got := test.do(t, s); got != want {
			t.Errorf("call %d: %s, want %s", i+1, got, want)
		}
		checkLifeOfMarker(t, rdb) // the second call may repair what the first one did wrong
	}
	if got := sceneOf(t, rdb); got != test.after {
		t.Errorf("the scene is\n%s, want\n%s", got, test.after)
	}
	if got := hintNames(log.end(t, rdb)); got != test.hints {
		t.Errorf("hints to %q, want %q", got, test.hints)
	}
}

// hintNames returns the names of the tokens in hints, sorted.
func hintNames(hints []string) string {
	names := make([]string, 0, len(hints))
	for _, hint := range hints {
		token, _, _ := strings.Cut(hint, " ")
		names = append(names, tokenName(token))
	}
	slices.Sort(names)
	return strings.Join(names, " ")
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
	// of the leases in a scene are whole minutes apart.
	const late = 20 * time.Second
	ends := time.Duration(last[0].Score) * time.Millisecond
	if lock < ends || lock > ends+late || set < ends {
		t.Errorf("the last lease ends at %v, the marker at %v, and the set at %v", ends, lock, set)
	}
}
