package console_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A counter counts the scans of a client.
type counter struct{ scans atomic.Int32 }

func (c *counter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (c *counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		for _, command := range commands {
			if strings.EqualFold(command.Name(), "scan") {
				c.scans.Add(1)
			}
		}
		return next(ctx, commands)
	}
}

func TestViewersShareTheirLists(t *testing.T) {
	t.Parallel()
	rdb, c := redistest.Reuse(t).Client(t), &counter{}
	rdb.AddHook(c)
	s := newSite(t, rdb)
	var viewers sync.WaitGroup
	begun := time.Now()
	for n := range 30 {
		viewers.Go(func() {
			if a := get(t, s, []string{"", "?outcomes", "?processes"}[n%3]); a.Code != http.StatusOK {
				t.Error(a.text())
			}
		})
	}
	viewers.Wait()
	scans := c.scans.Load()
	if most := 3 * (1 + int32(time.Since(begun)/pauseOfSites)); scans < 3 || scans > most {
		t.Errorf("%d scans for the three lists in %v", scans, time.Since(begun))
	}
	suite.Eventually(t, "the lists are made again", func() bool {
		get(t, s, "")
		return c.scans.Load() > scans
	})
}

func TestPagesShowTheLastDataWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rdb := server.Client(t, func(o *redis.Options) { o.MaxRetries, o.DialerRetries = -1, 1 })
	s, fresh := newSite(t, rdb), newSite(t, rdb)
	lease := must(newLocker(t, rdb).Lock(t.Context(), "k"))(t)
	record := s.unknown(t, newLocker(t, rdb), "pay")
	seen := s.lock(t, "k")
	lock, attempt, process := seen.Key.String(), record.Key.String(), processOf(lease)
	register(t, rdb, process, "payments", []string{lock}, nil)
	get(t, s, "").want(t, http.StatusOK, lock, attempt)
	server.Kill()

	suite.Eventually(t, "the page says that Redis is away", func() bool { return strings.Contains(get(t, s, "").text(), "Redis does not reply") })
	const last = "Redis does not reply, or refuses a command. reqlock: redis unavailable"
	get(t, s, "").want(t, http.StatusOK, last, "What follows is ", lock, attempt)
	get(t, s, "?lock="+lock).want(t, http.StatusServiceUnavailable, last, "What follows is", "payments on pod-7")
	get(t, s, "?attempt="+attempt).want(t, http.StatusServiceUnavailable, last, "What follows is", "State unknown")
	get(t, s, "?process="+process).want(t, http.StatusServiceUnavailable, last, "What follows is", lock)
	post(t, s, "?lock="+lock, revocation(seen, lease)).want(t, http.StatusServiceUnavailable, "Redis did not reply, or refused a command, so perhaps it was done")
	for _, query := range []string{"", "?outcomes", "?processes", "?lock=" + lock, "?attempt=" + attempt, "?process=" + process} {
		get(t, fresh, query).want(t, http.StatusServiceUnavailable, last, "There is no earlier data.")
	}
}
