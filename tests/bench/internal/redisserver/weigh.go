package redisserver

import (
	"context"
	"fmt"
	"time"
)

const (
	// leaveTime is how long clients that have ended may take to be gone.
	leaveTime = 5 * time.Second
	// leavePoll is the pause between two questions whether they are.
	leavePoll = 2 * time.Millisecond
)

// Weigh returns how much memory all keys take, with all that the server holds for
// them, and how many they are. It deletes them to find out. Only the server's own
// Client may be connected; those who have just ended are waited for. The buffers
// of that one make the memory wrong by up to 20 KiB or so: weigh many keys.
func (s *Server) Weigh(ctx context.Context) (bytes, keys int64, err error) {
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

// awaitAlone returns when nobody else is connected, since connections take memory.
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
