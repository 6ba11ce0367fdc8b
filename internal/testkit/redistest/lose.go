package redistest

import (
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
		for _, key := range keys { // one at a time: in a cluster they may be in several slots
			if err := rdb.Del(tb.Context(), key).Err(); err != nil {
				tb.Fatal(err)
			}
		}
		time.Sleep(losePause)
		return isLost()
	})
}
