package command

import (
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/topology"
)

// Replicas are those who must have what was written before it counts. The zero
// value is none.
type Replicas struct {
	// Count is how many of them.
	Count int
	// Timeout is how long they have for it.
	Timeout time.Duration
}

// Wanted reports whether there are any.
func (r Replicas) Wanted() bool { return r.Count > 0 }

// waitLateness is how long after the timeout a server may answer WAIT: it looks
// for those whose time is over ten times a second.
const waitLateness = 100 * time.Millisecond

// errOpaque is why a client is refused where replicas have to acknowledge.
var errOpaque = errors.New("the client does not show what it wraps, so nobody can tell on which connection it would send WAIT: " +
	"give it a client of one server, of Sentinel or of a cluster, or what embeds one")

// CheckReplicas refuses a client through which replicas cannot be asked whether
// they have what was written: one whose kind is not known, and one that gives a
// reply up before WAIT is over.
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

// A ShortfallError is the fault of what too few replicas have acknowledged. The server
// has done it, and may yet lose it.
type ShortfallError struct{ Count, Wanted int64 }

func (e *ShortfallError) Error() string {
	return fmt.Sprintf("only %d of %d replicas have acknowledged it", e.Count, e.Wanted)
}

// WaitCommand returns the command that asks how many replicas have what its connection
// has written.
func (r Replicas) WaitCommand() *Generic {
	return New(0, []any{"wait", r.Count, r.Timeout.Milliseconds()})
}

// Confirm reads the reply to it: nil if as many as wanted have it all.
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
