package redisserver

import (
	"context"
	"fmt"
	"time"
)

const (
	// leaveTime is how long clients may take to disconnect.
	leaveTime = 5 * time.Second
	// leavePoll is how often that is checked.
	leavePoll = 2 * time.Millisecond
)

// MeasureMemory returns the memory of all keys, with everything that the server stores for
// them, and the number of keys. It deletes the keys. Only the server's own Client may be
// connected; MeasureMemory waits for other clients to disconnect. The buffers of that
// client make the result wrong by up to about 20 KiB: measure many keys.
func (s *Server) MeasureMemory(ctx context.Context) (bytes, keys int64, err error) {
	if err := s.awaitAlone(ctx); err != nil {
		return 0, 0, err
	}
	full, err := s.Used(ctx)
	if err != nil {
		return 0, 0, err
	}
	if err := s.Clear(ctx); err != nil {
		return 0, 0, err
	}
	empty, err := s.Used(ctx)
	return full.Memory - empty.Memory, full.Keys - empty.Keys, err
}

// awaitAlone returns when no other client is connected, since connections take memory.
func (s *Server) awaitAlone(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	for {
		info, err := s.info(ctx, "clients")
		if err != nil {
			return err
		}
		if info["connected_clients"] == "1" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s clients are connected, not one: %w", info["connected_clients"], ctx.Err())
		case <-time.After(leavePoll):
		}
	}
}
