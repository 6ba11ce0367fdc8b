package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestCrashLeavesTheKeyToItsTTL(t *testing.T) {
	t.Parallel()
	s := newTestSite(t, allFrameworks()[0])
	dead, err := s.crash(t.Context(), "account:carol", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if took := dead.Died.Sub(dead.Asked); took < 0 || took > time.Minute {
		t.Errorf("the holder died %v after it asked", took)
	}
	left, err := s.redis.Client.PTTL(t.Context(), s.prefix+"account:carol").Result()
	if err != nil || left <= 0 || left > time.Minute {
		t.Errorf("the key lives for another %v, %v", left, err)
	}
}

func TestCrashTellsWhyItTookNoLock(t *testing.T) {
	s := newTestSite(t, allFrameworks()[0])
	if err := s.redis.Client.Set(t.Context(), s.prefix+"account:carol", "another", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	_, err := s.crash(t.Context(), "account:carol", time.Minute)
	if err == nil || !strings.Contains(err.Error(), "took no lock") || !strings.Contains(err.Error(), "busy") {
		t.Errorf("a held key: %v", err)
	}
	value, err := s.redis.Client.Get(t.Context(), s.prefix+"account:carol").Result()
	if errors.Is(err, redis.Nil) || value != "another" {
		t.Errorf("the other's key is %q, %v", value, err)
	}
}
