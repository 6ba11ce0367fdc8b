package inspect

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/topology"
)

const (
	// scanCount is how many keys a server looks at for one SCAN: less than 1 ms of its time.
	scanCount = 1000
	// batchSize is how many keys one batch reads.
	batchSize = 500
	// longestPause limits the pause after a slow command.
	longestPause = time.Second
)

// A scanner looks through the keys of all servers.
type scanner struct {
	*Inspector
	Scan

	pattern, kind string // those of SCAN
	steps         int    // how many SCANs there were
}

// A reader reads keys. The client of a cluster follows a key to another server.
type reader struct {
	pipeliner

	server pipeliner // the server that is looked through, or nil
}

// reader returns what reads single keys.
func (i *Inspector) reader() reader { return reader{i.rdb, nil} }

// run passes the names that SCAN finds to found, some at a time, with what reads them. A name may come
// twice. found returns false to end the search.
func (s *scanner) run(ctx context.Context, found func(keys reader, names []string) (more bool, err error)) error {
	s.Truncated = true
	nodes, err := s.masters(ctx)
	if err != nil {
		return asError(ctx, err)
	}
	for _, node := range nodes {
		keys, err := ask(ctx, node, newQuery(noKey, "dbsize"))
		if err != nil { // the others do not have all keys
			s.DBSize = 0
			break
		}
		count, _ := keys.(int64)
		s.DBSize += int(count)
	}
	defer func() {
		switch s.Scanned = s.steps * scanCount; { // about: a server looks at whole buckets
		case s.DBSize > 0 && !s.Truncated:
			s.Scanned = s.DBSize
		case s.DBSize > 0:
			s.Scanned = min(s.Scanned, s.DBSize)
		}
	}()
	for _, node := range nodes {
		if more, err := s.runOn(ctx, node, found); err != nil || !more {
			return err
		}
	}
	s.Truncated = false
	return nil
}

// runOn is run for one server.
func (s *scanner) runOn(ctx context.Context, node redis.UniversalClient, found func(reader, []string) (bool, error)) (more bool, err error) {
	keys := reader{s.rdb, node}
	_, isCluster := s.rdb.(topology.Cluster)
	if client, hasConn := node.(interface{ Conn() *redis.Conn }); hasConn && !isCluster {
		// A cursor is that of one server: after a failover, it would leave out keys of the next one.
		conn := client.Conn()
		defer func() { _ = conn.Close() }()
		keys = reader{conn, conn}
	}
	cursor := "0"
	for {
		begun := time.Now()
		next, names, err := s.step(ctx, keys.server, cursor)
		if err != nil {
			return false, err
		}
		for some := range slices.Chunk(names, batchSize) {
			if more, err := found(keys, some); err != nil || !more {
				return false, err
			}
		}
		if cursor = next; cursor == "0" {
			return true, nil
		}
		if err := s.rest(ctx, time.Since(begun)); err != nil {
			return false, err
		}
	}
}

// step returns the next names.
func (s *scanner) step(ctx context.Context, server pipeliner, cursor string) (next string, names []string, err error) {
	value, err := ask(ctx, server, newQuery(noKey, "scan", cursor, "match", s.pattern, "count", scanCount, "type", s.kind))
	if err != nil {
		return "", nil, asError(ctx, err)
	}
	s.steps++
	reply, isList := value.([]any)
	if isList && len(reply) == 2 {
		next, isText := reply[0].(string)
		found, isList := reply[1].([]any)
		if isText && isList {
			return next, texts(found), nil
		}
	}
	return "", nil, asError(ctx, command.UnexpectedReply(value))
}

// rest pauses after commands that took so long.
func (s *scanner) rest(ctx context.Context, took time.Duration) error {
	pause := s.pause
	if pause == 0 {
		pause = min(took, longestPause)
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// texts returns those of the values that are strings.
func texts(values []any) []string {
	found := make([]string, 0, len(values))
	for _, value := range values {
		if text, isText := value.(string); isText {
			found = append(found, text)
		}
	}
	return found
}
