package child

import (
	"context"
	"encoding/json"
	"time"
)

// A Job is work for one process. Its exported fields go to the child as JSON.
type Job interface {
	// Kind names the type of the job.
	Kind() string
	// Prepare connects and warms up.
	Prepare(ctx context.Context) error
	// Run does the work, from the moment start on. The result goes to the
	// parent as JSON.
	Run(ctx context.Context, start time.Time) (any, error)
	// Close ends what Prepare has begun.
	Close() error
}

// order is what a child is told first.
type order struct {
	Kind    string
	Profile string // where to write a CPU profile; empty for none
	Job     json.RawMessage
}

// signal is what a child is told when all are ready.
type signal struct {
	Start time.Time
}

// reply is what a child says: that it is ready, and then its result.
type reply struct {
	Error  string
	Result json.RawMessage
}
