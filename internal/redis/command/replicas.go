package command

import (
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/topology"
)

// Replicas are the replicas that must acknowledge a write before it counts. The zero value
// is none.
type Replicas struct {
	// Count is how many replicas must acknowledge it.
	Count int
	// Timeout is how long they have for that.
	Timeout time.Duration
}

// Wanted reports whether any replica must acknowledge.
func (r Replicas) Wanted() bool { return r.Count > 0 }

// waitLateness is how long after its timeout a server may answer WAIT: it checks the
// timeouts of clients ten times a second.
const waitLateness = 100 * time.Millisecond

// errOpaque refuses a client of an unknown type.
var errOpaque = errors.New("the client does not show what it wraps, so reqlock cannot know on which connection it would send WAIT: " +
	"give it a client of one server, of Sentinel or of a cluster, or what embeds one")

// CheckReplicas returns an error if replicas are wanted and WAIT does not work with the
// client: its kind is unknown, or it stops waiting for a reply before WAIT ends.
func CheckReplicas(rdb redis.UniversalClient, replicas Replicas) error {
	if !replicas.Wanted() {
		return nil
	}
	var read time.Duration
	switch client := rdb.(type) {
	case topology.Server:
		read = client.Options().ReadTimeout
	case topology.Cluster:
		read = client.Options().ReadTimeout
	default:
		return errOpaque
	}
	if least := replicas.Timeout + waitLateness; read > 0 && read < least {
		return fmt.Errorf("the client waits for a reply for %v (ReadTimeout), and WAIT may take %v: raise it, or lower the timeout", read, least)
	}
	return nil
}

// A ShortfallError is the error of a write that too few replicas have acknowledged. The
// master has the write, and may still lose it.
type ShortfallError struct{ Count, Wanted int64 }

func (e *ShortfallError) Error() string {
	return fmt.Sprintf("only %d of %d replicas have acknowledged it", e.Count, e.Wanted)
}

// WaitCommand returns a WAIT, which counts the replicas that have what its connection has
// written.
func (r Replicas) WaitCommand() *Generic {
	return New(0, []any{"wait", r.Count, r.Timeout.Milliseconds()})
}

// Confirm returns nil if the reply to WAIT says that enough replicas have all of it.
func (r Replicas) Confirm(value any, err error) error {
	if err != nil {
		return err
	}
	count, isNumber := value.(int64)
	switch {
	case !isNumber:
		return UnexpectedReply(value)
	case count < int64(r.Count):
		return &ShortfallError{count, int64(r.Count)}
	default:
		return nil
	}
}
