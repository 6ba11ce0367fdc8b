package redistest

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// losePause is the pause between two deletions of a lost key.
const losePause = 20 * time.Millisecond

// Lose deletes the keys until isLost reports that their loss was noticed. One deletion is not enough:
// on a busy machine a command is sent twice, and the second one may restore the key.
func Lose(tb testing.TB, rdb redis.UniversalClient, what string, isLost func() bool, keys ...string) {
	tb.Helper()
	suite.Eventually(tb, what, func() bool {
		if err := deleteKeys(tb, rdb, keys); err != nil {
			tb.Fatal(err)
		}
		time.Sleep(losePause)
		return isLost()
	})
}

// LoseAnywhere deletes the keys until the channel is closed. Unlike Lose, LoseAnywhere may be
// called on any goroutine, for example by a handler. If the channel is still open after ten
// seconds, LoseAnywhere fails the test and returns.
func LoseAnywhere(tb testing.TB, rdb redis.UniversalClient, what string, lost <-chan struct{}, keys ...string) {
	tb.Helper()
	giveUp := time.After(suite.PatienceOfHandlers)
	for {
		if err := deleteKeys(tb, rdb, keys); err != nil {
			tb.Error(err)
			return
		}
		select {
		case <-lost:
			return
		case <-giveUp:
			tb.Errorf("after %v, still not: %s", suite.PatienceOfHandlers, what)
			return
		case <-time.After(losePause):
		}
	}
}

// deleteKeys deletes the keys one at a time: in a cluster they may be in several slots.
func deleteKeys(tb testing.TB, rdb redis.UniversalClient, keys []string) error {
	tb.Helper()
	var failed error
	for _, key := range keys {
		failed = errors.Join(failed, rdb.Del(tb.Context(), key).Err())
	}
	return failed
}
