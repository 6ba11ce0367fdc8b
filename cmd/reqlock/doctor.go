package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	rediscommand "github.com/reqlock/reqlock/internal/redis/command"
)

// A finding is a line of doctor. Result is ok, warn or fail.
type finding struct {
	Check  string `json:"check"`
	Result string `json:"result"`
	Detail string `json:"detail"`
}

// The results of a check.
const (
	ok   = "ok"
	warn = "warn"
	fail = "fail"
)

// A check is a part of doctor.
type check func(ctx context.Context, c *call, s *server) []finding

// doctor runs all checks. It fails if a check does.
func doctor(ctx context.Context, c *call) error {
	return c.withServer(func(s *server) error {
		var all []finding
		for _, do := range []check{checkServers, checkLocker, checkKeys} {
			err := c.within(ctx, func(ctx context.Context) error {
				all = append(all, do(ctx, c, s)...)
				return nil
			})
			if err != nil {
				return err
			}
			if all[0].Result == fail { // Redis does not reply
				break
			}
		}
		var rows [][]string
		var result error
		for _, f := range all {
			if f.Result == fail {
				result = silentError(exitError)
			}
			if !c.json {
				rows = append(rows, []string{f.Result, f.Check, f.Detail})
			} else if err := c.printJSON(f); err != nil {
				return err
			}
		}
		c.table(c.out, []string{"RESULT", "CHECK", "DETAIL"}, rows)
		return result
	})
}

// failed returns the finding of an error.
func failed(check string, err error) finding {
	return finding{check, fail, strings.TrimPrefix(err.Error(), "reqlock: ")}
}

// maxSkew is the difference of clocks above which doctor warns. Locks do not depend on clocks. The
// lines of logs do, and the ends of shared leases after a failover.
const maxSkew = time.Second

// checkServers finds out the version of each server, and whether its clock is right.
func checkServers(ctx context.Context, _ *call, s *server) []finding {
	var versions []string
	var skew time.Duration
	err := s.each(ctx, func(ctx context.Context, rdb redis.UniversalClient) error {
		begun := time.Now()
		now, err := rdb.Time(ctx).Result()
		if err != nil {
			return err
		}
		took := time.Since(begun)
		if off := now.Sub(begun.Add(took / 2)); off.Abs() > skew.Abs()+took/2 {
			skew = off
		}
		versions = append(versions, versionOf(ctx, rdb))
		return nil
	})
	if err != nil {
		return []finding{failed("redis", rediscommand.Sanitize(err))}
	}
	return []finding{{"redis", ok, strings.Join(versions, ", ")}, clockFinding(skew)}
}

// clockFinding returns the finding of a difference of clocks.
func clockFinding(skew time.Duration) finding {
	f := finding{"clock", ok, "no clock difference"}
	if skew.Abs() >= time.Millisecond {
		f.Detail = fmt.Sprintf("that of Redis differs by %v from the one here", span(skew.Abs()))
	}
	if skew.Abs() > maxSkew {
		f.Result = warn
	}
	return f
}

// versionOf returns the version of a server.
func versionOf(ctx context.Context, rdb redis.UniversalClient) string {
	info, err := rdb.Info(ctx, "server").Result()
	if err != nil {
		return "unknown version: this user lacks +info"
	}
	version := ""
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "redis_version":
			version = "redis " + value
		case "valkey_version":
			return quoted("valkey " + value)
		}
	}
	return quoted(version)
}

// checkLocker runs core.Check.
func checkLocker(ctx context.Context, c *call, s *server) (all []finding) {
	warnings := make(chan string, 16)
	observer := core.WithObserver(func(e core.Event) {
		if e.Kind != core.Warned {
			return
		}
		select {
		case warnings <- strings.TrimPrefix(e.Err.Error(), "reqlock: "):
		default:
		}
	})
	err := s.withLocker(ctx, c, func(locks *core.Locker) error { return locks.Check(ctx) }, observer)
	result := finding{"lock", ok, "this user can lock, wait, and run an idempotent request"}
	if err != nil {
		result = failed("lock", err)
	}
	for {
		select {
		case warning := <-warnings:
			all = append(all, finding{"lock", warn, warning})
		default:
			return append(all, result)
		}
	}
}
