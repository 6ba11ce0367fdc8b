package console

import "time"

// SetPause sets the pause between two scans of a Console: a test need not wait for two seconds.
func SetPause(c *Console, pause time.Duration) { c.board.pause = pause }
