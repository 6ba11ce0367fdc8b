package redisserver

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
)

// A Usage is what the server has done since it started.
type Usage struct {
	CPU    time.Duration    // user and system
	Calls  map[string]int64 // commands by name, including those of scripts
	Memory int64            // bytes of its data
	Keys   int64
}

// Used returns what the server has done so far.
func (s *Server) Used(ctx context.Context) (Usage, error) {
	info, err := s.info(ctx, "cpu", "commandstats", "memory", "keyspace")
	if err != nil {
		return Usage{}, err
	}
	usage := Usage{
		CPU:   secondsOf(info["used_cpu_user"]) + secondsOf(info["used_cpu_sys"]),
		Calls: make(map[string]int64),
	}
	usage.Memory, _ = strconv.ParseInt(info["used_memory"], 10, 64)
	usage.Keys = field(info["db0"], "keys")
	for name, value := range info {
		if called, ok := strings.CutPrefix(name, "cmdstat_"); ok && called != "info" {
			usage.Calls[called] = field(value, "calls")
		}
	}
	return usage, nil
}

// Since returns the usage since an earlier one. Memory and Keys may be negative.
func (u Usage) Since(earlier Usage) Usage {
	since := Usage{
		CPU:    u.CPU - earlier.CPU,
		Calls:  make(map[string]int64),
		Memory: u.Memory - earlier.Memory,
		Keys:   u.Keys - earlier.Keys,
	}
	for name, calls := range u.Calls {
		if calls -= earlier.Calls[name]; calls > 0 {
			since.Calls[name] = calls
		}
	}
	return since
}

// add adds the usage of another server.
func (u *Usage) add(other Usage) {
	u.CPU += other.CPU
	u.Memory += other.Memory
	u.Keys += other.Keys
	for name, calls := range other.Calls {
		u.Calls[name] += calls
	}
}

// Version returns the version of the server.
func (s *Server) Version(ctx context.Context) (string, error) {
	info, err := s.info(ctx, "server")
	return info["redis_version"], err
}

// Clear deletes all keys.
func (s *Server) Clear(ctx context.Context) error {
	return s.Client.FlushAll(ctx).Err()
}

// info returns the fields of some sections of INFO.
func (s *Server) info(ctx context.Context, sections ...string) (map[string]string, error) {
	text, err := s.Client.Info(ctx, sections...).Result()
	if err != nil {
		return nil, fmt.Errorf("ask redis-server for its state: %w", err)
	}
	return command.InfoFields(text), nil
}

// field returns the number of one part of a value such as "calls=3,usec=4", or 0 if it is
// missing.
func field(value, name string) int64 {
	for part := range strings.SplitSeq(value, ",") {
		if key, number, _ := strings.Cut(part, "="); key == name {
			n, _ := strconv.ParseInt(number, 10, 64)
			return n
		}
	}
	return 0
}

// secondsOf reads a number of seconds, or 0.
func secondsOf(text string) time.Duration {
	seconds, _ := strconv.ParseFloat(text, 64)
	return time.Duration(seconds * float64(time.Second))
}
