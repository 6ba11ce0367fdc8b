package jobprocess

import (
	"context"
	"encoding/json"
	"time"
)

// A Job is work for one process. Its exported fields go to the child as JSON.
type Job interface {
	// Kind identifies the type of the job.
	Kind() string
	// Prepare connects and warms up.
	Prepare(ctx context.Context) error
	// Run does the work from the time start on. The result goes to the parent as JSON.
	Run(ctx context.Context, start time.Time) (any, error)
	// Close ends what Prepare has started.
	Close() error
}

// A jobMessage is the first message to a child.
type jobMessage struct {
	Kind    string
	Profile string // the file for a CPU profile; "" for none
	Job     json.RawMessage
}

// A startMessage is sent when all children are ready.
type startMessage struct {
	Start time.Time
}

// A reply is a message of a child: ready, or the result.
type reply struct {
	Error  string
	Result json.RawMessage
}
