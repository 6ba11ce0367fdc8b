package inspect

import (
	"context"
	"errors"
	"regexp"
	"slices"

	"github.com/reqlock/reqlock/internal/redis/registry"
)

// Processes lists the processes that are registered with core.WithInstance. It looks through all keys:
// see Locks for what that means, and for its error.
func (i *Inspector) Processes(ctx context.Context) (ProcessPage, error) {
	page := ProcessPage{}
	s := scanner{Inspector: i, pattern: i.names.ProcessPattern(""), kind: "hash"}
	err := s.runProcesses(ctx, func(p Process) bool {
		if len(page.Processes) == i.limit {
			return false
		}
		page.Processes = append(page.Processes, p)
		return true
	})
	page.Scan = s.Scan
	slices.SortFunc(page.Processes, compareProcesses)
	return page, err
}

// The errors of an id that an operator types.
var (
	errProcessID        = errors.New("reqlock: Process: the id is not 32 hex digits in lower case, nor the first 4 or more of them")
	errSeveralProcesses = errors.New("reqlock: Process: the ids of several processes begin with these digits: give more of them")
)

// processDigits are the first digits of the id of a process.
var processDigits = regexp.MustCompile(`^[0-9a-f]{4,32}$`)

// Process reads one process that is registered with core.WithInstance. The id may be its first 4 digits
// or more: then Process looks through all keys, and returns an error if the ids of several processes
// begin with them. It returns core.ErrNotFound if Redis has no record of the process.
func (i *Inspector) Process(ctx context.Context, id string) (Process, error) {
	if !processDigits.MatchString(id) {
		return Process{}, errProcessID
	}
	var found []Process
	var err error
	if processID.MatchString(id) {
		found, err = i.readProcesses(ctx, i.reader(), []string{id})
	} else {
		s := scanner{Inspector: i, pattern: i.names.ProcessPattern(id), kind: "hash"}
		err = s.runProcesses(ctx, func(p Process) bool {
			found = append(found, p)
			return len(found) < 2
		})
	}
	switch {
	case err != nil:
		return Process{}, err
	case len(found) == 0:
		return Process{}, silentError{}
	case len(found) > 1:
		return Process{}, errSeveralProcesses
	}
	return found[0], nil
}

// runProcesses passes each process to found, which returns false to end the search.
func (s *scanner) runProcesses(ctx context.Context, found func(Process) (more bool)) error {
	seen := make(map[string]bool)
	return s.run(ctx, func(keys reader, names []string) (bool, error) {
		var ids []string
		for _, name := range names {
			if id, isRecord := s.names.OfProcess(name); isRecord && !seen[id] {
				seen[id] = true
				ids = append(ids, id)
			}
		}
		processes, err := s.readProcesses(ctx, keys, ids)
		for _, p := range processes {
			if !found(p) {
				return false, nil
			}
		}
		return true, err
	})
}

// readProcesses reads the processes with these ids. It leaves out those without a record, and hashes
// of other programs.
func (i *Inspector) readProcesses(ctx context.Context, keys reader, ids []string) ([]Process, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	queries := make([]*query, 0, 2*len(ids))
	for _, id := range ids {
		name := i.names.Process(id)
		queries = append(queries, newQuery(keyFirst, registry.FieldsOf(name)...), newQuery(keyFirst, "pttl", name))
	}
	send(ctx, keys, queries)
	processes := make([]Process, 0, len(ids))
	for n, id := range ids {
		fields, err := queries[2*n].replyOfKey()
		if err != nil {
			return nil, asError(ctx, err)
		}
		ttl, err := queries[2*n+1].replyOfKey()
		if err != nil {
			return nil, asError(ctx, err)
		}
		if fields == nil || ttl == nil {
			continue
		}
		record, isRecord, err := registry.DecodeReplies(fields, ttl)
		if err != nil && !errors.Is(err, registry.ErrNotARecord) {
			return nil, asError(ctx, err)
		}
		if isRecord {
			processes = append(processes, newProcess(id, &record))
		}
	}
	return processes, nil
}

// processesOf returns the Processes of a lock.
func (i *Inspector) processesOf(ctx context.Context, lock *Lock) ([]Process, error) {
	var ids []string
	seen := map[string]bool{"": true}
	add := func(id string) {
		if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	for _, h := range lock.Holders {
		add(h.Process)
	}
	for _, w := range lock.Waiters {
		add(w.Process)
	}
	var all []Process
	for some := range slices.Chunk(ids, batchSize) {
		processes, err := i.readProcesses(ctx, i.reader(), some)
		if err != nil {
			return nil, err
		}
		all = append(all, processes...)
	}
	return all, nil
}
