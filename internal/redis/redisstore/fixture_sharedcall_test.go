package redisstore

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// The times of the requests whose tokens have names.
const (
	namedTTL   = 10 * time.Minute
	namedClaim = time.Minute
)

// namedRequest returns a request for the lock with the token of this name.
func namedRequest(name string) storetest.AnyRequest {
	limit, _, _ := parseName(name)
	r := storetest.Request(tokenOf(name))
	r.Limit, r.TTL, r.Claim = limit, namedTTL, namedClaim
	return r
}

// A sharedCall sends a command, and returns the result as a text.
type sharedCall func(*testing.T, *syncStore) string

// asks returns the call of an ask of the token. The options are "try", which does not join
// the queue, "briefly", which besides does not want the holder, "number", which reserves
// fencing numbers, and "fresh".
func asks(name string, options ...string) sharedCall {
	return func(t *testing.T, s *syncStore) string {
		t.Helper()
		r := namedRequest(name)
		for _, option := range options {
			r.Join = r.Join && option != "try" && option != "briefly"
			r.WithHolder = r.WithHolder && option != "briefly"
			r.Apart = r.Apart || option == "fresh"
			r.Fresh = r.Apart
			if option == "number" {
				r.Fences = 8
			}
		}
		got, err := s.Enqueue(t.Context(), r)
		return answerText(t, got, err)
	}
}

// takes returns the call of a take of the token.
func takes(name string) sharedCall {
	return func(t *testing.T, s *syncStore) string {
		t.Helper()
		got, err := s.Take(t.Context(), namedRequest(name))
		return answerText(t, got, err)
	}
}

// begins returns the call that begins an attempt.
func begins(name string) sharedCall {
	return func(t *testing.T, s *syncStore) string {
		t.Helper()
		r := namedRequest(name)
		r.Attempt = storetest.AttemptRequest("").Attempt
		got, err := s.Enqueue(t.Context(), r)
		return answerText(t, got, err)
	}
}

// commits returns the call that commits an attempt.
func commits(name string) sharedCall {
	return func(t *testing.T, s *syncStore) string {
		t.Helper()
		r := namedRequest(name)
		r.Attempt, r.Ending, r.Record = storetest.AttemptRequest("").Attempt, store.EndCommit, []byte(storetest.Record)
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
	case reflect.DeepEqual(got, store.Answer{HolderUnknown: true}):
		return "no room"
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
func releases(name, rejoin string) sharedCall {
	return func(t *testing.T, s *syncStore) string {
		t.Helper()
		r := namedRequest(name)
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

// renews returns the call of a renewal that reserves so many fencing numbers.
func renews(name string, numbers int) sharedCall {
	return func(t *testing.T, s *syncStore) string {
		t.Helper()
		r := namedRequest(name)
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

// A sharedTransition is a state before and after a call that runs twice.
type sharedTransition struct {
	name      string
	before    sharedState
	listening string // the processes that subscribe
	do        sharedCall
	first     string
	second    string // "" is the same as first
	after     sharedState
	hints     string // the tokens, sorted by process
}

// check runs the call twice, and fails the test unless the answers, the state and the hints
// are those of the test.
func (test *sharedTransition) check(t *testing.T, rdb redis.UniversalClient, s *syncStore) {
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
	if got := sharedStateOf(t, rdb); got != test.after {
		t.Errorf("the state is\n%s, want\n%s", got, test.after)
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
