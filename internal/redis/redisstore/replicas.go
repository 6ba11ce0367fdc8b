package redisstore

import (
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Replicas are those who must have what was written before it counts. The zero
// value is none.
type Replicas struct {
	// Count is how many of them.
	Count int
	// Timeout is how long they have for it.
	Timeout time.Duration
}

// wanted reports whether there are any.
func (r Replicas) wanted() bool { return r.Count > 0 }

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
	if !replicas.wanted() {
		return nil
	}
	var read time.Duration
	switch client := rdb.(type) {
	case serverClient:
		read = client.Options().ReadTimeout
	case clusterClient:
		read = client.Options().ReadTimeout
	default:
		return errOpaque
	}
	if least := replicas.Timeout + waitLateness; read > 0 && read < least {
		return fmt.Errorf("the client waits for a reply for %v (ReadTimeout), and WAIT may take %v: raise it, or lower the timeout", read, least)
	}
	return nil
}

// A shortError is the fault of what too few replicas have acknowledged. The server
// has done it, and may yet lose it.
type shortError struct{ count, of int64 }

func (e *shortError) Error() string {
	return fmt.Sprintf("only %d of %d replicas have acknowledged it", e.count, e.of)
}

// command returns the command that asks how many replicas have what its connection
// has written.
func (r Replicas) command() *single {
	return newSingle(0, []any{"wait", r.Count, r.Timeout.Milliseconds()})
}

// confirm reads the reply to it: nil if as many as wanted have it all.
func (r Replicas) confirm(value any, err error) error {
	if err != nil {
		return err
	}
	count, isNumber := value.(int64)
	switch {
	case !isNumber:
		return errShape(value)
	case count < int64(r.Count):
		return &shortError{count, int64(r.Count)}
	default:
		return nil
	}
}
