package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/redis/keyspace"
	"github.com/reqlock/reqlock/internal/redis/pipeline"
	"github.com/reqlock/reqlock/internal/redis/script"
	"github.com/reqlock/reqlock/internal/redis/topology"
	"github.com/reqlock/reqlock/internal/store"
)

const (
	// scanCount is how many keys a server looks at for one SCAN: less than 1 ms of its time.
	scanCount = 1000
	// maxSearchPause is the longest pause between two commands of a Search.
	maxSearchPause = time.Second
)

// A search is one Search on one server.
type search struct {
	store *Store
	node  redis.UniversalClient
	bound time.Duration
}

// Search looks through the keys of the server, or of each master of a cluster, one after the other,
// also if one of them fails: see store.Searcher. After each command it pauses for as long as the
// command took, so it uses at most half of the time of a server, and less of a server that is slow.
func (s *Store) Search(ctx context.Context, bound time.Duration, found func([]store.OpenRecord) error) error {
	nodes, err := s.masters(ctx, bound)
	for _, node := range nodes {
		if failed := (&search{s, node, bound}).run(ctx, found); err == nil {
			err = failed
		}
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, os.ErrDeadlineExceeded) && !command.IsUnsent(err):
		return command.NewFault(command.ErrNoReply, false) // without the addresses in the text
	default:
		return command.NewFault(err, false)
	}
}

// masters returns the servers that can have records, as the client knows them now.
func (s *Store) masters(ctx context.Context, bound time.Duration) (nodes []redis.UniversalClient, err error) {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	oneSlot := s.names.Lock("k")
	if !keyspace.HasTag(oneSlot) {
		oneSlot = ""
	}
	return topology.Masters(ctx, s.rdb, oneSlot)
}

// run passes the open records of the server to found.
func (s *search) run(ctx context.Context, found func([]store.OpenRecord) error) error {
	cursor := "0"
	for {
		next, names, err := s.scan(ctx, cursor)
		if err != nil {
			return err
		}
		for some := range slices.Chunk(s.records(names), pipeline.Width) {
			open, err := s.read(ctx, some)
			if err == nil && len(open) > 0 {
				err = found(open)
			}
			if err != nil {
				return err
			}
		}
		if cursor = next; cursor == "0" {
			return nil
		}
	}
}

// scan returns the next names that may be those of records.
func (s *search) scan(ctx context.Context, cursor string) (next string, names []any, err error) {
	scan := command.New(0, []any{"scan", cursor, "match", s.store.names.RecordPattern(), "count", scanCount, "type", "string"}) //nolint:contextcheck // Process gets it
	err = s.send(ctx, func(ctx context.Context) error { return s.node.Process(ctx, scan) })
	value, err := scan.Reply(err)
	if err != nil {
		return "", nil, asRightError(err, "scan")
	}
	if reply, isList := value.([]any); isList && len(reply) == 2 {
		next, isText := reply[0].(string)
		names, isList := reply[1].([]any)
		if isText && isList {
			return next, names, nil
		}
	}
	return "", nil, command.UnexpectedReply(value)
}

// asRightError returns the error of a command with what to do about it. A missing right of a search is no outage, because
// locks work without it.
func asRightError(err error, name string) error {
	if strings.HasPrefix(err.Error(), "NOPERM") {
		return fmt.Errorf("the user of redis may not run %s: grant it +%s (%w)", strings.ToUpper(name), name, command.Sanitize(err))
	}
	return err
}

// send sends commands within the bound, and then pauses for as long as that took.
func (s *search) send(ctx context.Context, send func(context.Context) error) error {
	begun := time.Now()
	bounded, cancel := context.WithTimeout(ctx, s.bound)
	defer cancel()
	err := command.Exec(func() error { return send(bounded) })
	pause := time.NewTimer(min(time.Since(begun), maxSearchPause))
	defer pause.Stop()
	select {
	case <-pause.C:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// records returns the names of records among names. Their locks are not known to be those of
// attempts: any client may write a key with any name.
func (s *search) records(names []any) (records []store.OpenRecord) {
	for _, name := range names {
		text, _ := name.(string)
		if lock, key, ok := s.store.names.OfRecord(text); ok {
			records = append(records, store.OpenRecord{Lock: lock, Key: key})
		}
	}
	return records
}

// read returns those of the records that are open. It asks for the idle time first, because each
// other command ends that. It reads the beginning of a record, because the answer may be long.
func (s *search) read(ctx context.Context, records []store.OpenRecord) (open []store.OpenRecord, err error) {
	pipe := s.node.Pipeline()
	idles, starts := make([]*command.Generic, len(records)), make([]*command.Generic, len(records))
	for i, record := range records {
		name := s.store.names.Companion(record.Lock, keyspace.RecordSuffix)
		idles[i] = command.New(2, []any{"object", "idletime", name})                   //nolint:contextcheck // Process gets it
		starts[i] = command.New(1, []any{"getrange", name, 0, script.RecordStart - 1}) //nolint:contextcheck // Process gets it
		_ = pipe.Process(ctx, idles[i])
		_ = pipe.Process(ctx, starts[i])
	}
	batchErr := s.send(ctx, func(ctx context.Context) error {
		_, err := pipe.Exec(ctx)
		return err
	})
	for i, record := range records {
		value, err := starts[i].Reply(batchErr)
		switch {
		case err != nil && isOtherRecord(err):
			continue
		case err != nil:
			return nil, asRightError(err, "getrange")
		}
		start, isText := value.(string)
		if !isText {
			return nil, command.UnexpectedReply(value)
		}
		found, isRecord := script.ParseRecord(start, math.MaxInt)
		if !isRecord || found.State != 'R' {
			continue
		}
		if found.IsReported {
			record.Reported = script.Digest(found.Token)
		}
		if idle, err := idles[i].Reply(batchErr); err == nil { // an error is a missing right, or the policy LFU
			seconds, _ := idle.(int64)
			record.Idle = time.Duration(seconds) * time.Second
		}
		open = append(open, record)
	}
	return open, nil
}

// isOtherRecord reports whether an error is about one key: it is no record, or its slot has moved
// to another server.
func isOtherRecord(err error) bool {
	text := err.Error()
	return strings.HasPrefix(text, "WRONGTYPE") || strings.HasPrefix(text, "MOVED") || strings.HasPrefix(text, "ASK")
}
