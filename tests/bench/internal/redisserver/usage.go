package redisserver

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
)

// Version returns the version of the servers.
func (s *Servers) Version(ctx context.Context) (string, error) {
	info, err := infoOf(ctx, s.masters[0], "server")
	return info["redis_version"], err
}

// CPU returns the CPU time of all servers since they started, including their own traffic.
func (s *Servers) CPU(ctx context.Context) (sum time.Duration, err error) {
	for _, server := range slices.Concat(s.masters, s.replicas) {
		info, err := infoOf(ctx, server, "cpu")
		if err != nil {
			return 0, err
		}
		for _, field := range []string{"used_cpu_user", "used_cpu_sys"} {
			seconds, err := strconv.ParseFloat(info[field], 64)
			if err != nil {
				return 0, err
			}
			sum += time.Duration(seconds * float64(time.Second))
		}
	}
	return sum, nil
}

// leaveTime is how long clients may take to disconnect, and leavePoll how often they are counted.
const leaveTime, leavePoll = 5 * time.Second, 5 * time.Millisecond

// Memory returns the memory of all keys of one server, with everything that it stores for them,
// and the number of keys. It deletes the keys. It waits until all other clients have disconnected,
// since connections take memory. The buffers of its own client make the result wrong by up to
// about 20 KiB: measure many keys.
func (s *Servers) Memory(ctx context.Context) (bytes, keys int64, err error) {
	server := s.masters[0]
	if err := awaitAlone(ctx, server); err != nil {
		return 0, 0, err
	}
	if keys, err = server.DBSize(ctx).Result(); err != nil {
		return 0, 0, err
	}
	full, err := numberOf(ctx, server, "memory", "used_memory")
	if err != nil {
		return 0, 0, err
	}
	if err := s.Clear(ctx); err != nil {
		return 0, 0, err
	}
	empty, err := numberOf(ctx, server, "memory", "used_memory")
	return full - empty, keys, err
}

// awaitAlone returns when no other client is connected.
func awaitAlone(ctx context.Context, server *redis.Client) error {
	for end := time.Now().Add(leaveTime); ; time.Sleep(leavePoll) {
		clients, err := numberOf(ctx, server, "clients", "connected_clients")
		if err != nil || clients == 1 {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d clients are still connected", clients-1)
		}
	}
}

// numberOf returns a whole number of INFO.
func numberOf(ctx context.Context, server *redis.Client, section, field string) (int64, error) {
	info, err := infoOf(ctx, server, section)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(info[field], 10, 64)
}

// infoOf returns the fields of a section of INFO.
func infoOf(ctx context.Context, server *redis.Client, section string) (map[string]string, error) {
	text, err := server.Info(ctx, section).Result()
	if err != nil {
		return nil, fmt.Errorf("ask redis-server for its state: %w", err)
	}
	return command.InfoFields(text), nil
}
