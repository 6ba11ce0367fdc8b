package redistest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// deletions is a hook that records the deleted keys. No command reaches a server.
type deletions struct{ keys []string }

func (*deletions) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*deletions) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (d *deletions) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		d.keys = append(d.keys, cmd.Args()[1].(string))
		return nil
	}
}

// loseInBubble runs a test with a client that has the hook, in a bubble of testing/synctest.
func loseInBubble(t *testing.T, test func(t *testing.T, rdb *redis.Client, deleted *deletions)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb := redis.NewClient(&redis.Options{
			// Otherwise the client looks up its host, and the resolver shares a lock with other tests.
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		})
		defer func() { _ = rdb.Close() }()
		deleted := &deletions{}
		rdb.AddHook(deleted)
		test(t, rdb, deleted)
	})
}

// A late command may restore a key after its deletion.
func TestLoseDeletesAgainUntilTheLossIsNoticed(t *testing.T) {
	loseInBubble(t, func(t *testing.T, rdb *redis.Client, deleted *deletions) {
		Lose(t, rdb, "the second deletion is noticed", func() bool { return len(deleted.keys) >= 4 }, "a", "b")
		if want := []string{"a", "b", "a", "b"}; !slices.Equal(deleted.keys, want) {
			t.Errorf("deleted %q, want %q", deleted.keys, want)
		}
	})
}

func TestLoseAnywhereDeletesAgainUntilTheLossIsNoticed(t *testing.T) {
	loseInBubble(t, func(t *testing.T, rdb *redis.Client, deleted *deletions) {
		lost := make(chan struct{})
		time.AfterFunc(losePause+losePause/2, func() { close(lost) }) // after the second deletion
		LoseAnywhere(t, rdb, "the second deletion is noticed", lost, "a", "b")
		if want := []string{"a", "b", "a", "b"}; !slices.Equal(deleted.keys, want) {
			t.Errorf("deleted %q, want %q", deleted.keys, want)
		}
	})
}

func TestLoseAnywhereFailsTheTestAfterTenSeconds(t *testing.T) {
	loseInBubble(t, func(t *testing.T, rdb *redis.Client, _ *deletions) {
		test, begun := &recorder{TB: t}, time.Now()
		LoseAnywhere(test, rdb, "the loss is noticed", make(chan struct{}), "a")
		if took := time.Since(begun); took != suite.PatienceOfHandlers || !strings.Contains(test.reported(), "the loss is noticed") {
			t.Errorf("after %v it failed with %q", took, test.reported())
		}
	})
}
