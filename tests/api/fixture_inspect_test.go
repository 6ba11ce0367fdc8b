package api

import (
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/console"
	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/inspect"
)

// inspected returns samples of packages inspect and console: a lock and a record of the key.
func inspected(t *testing.T, key string) map[string][]any {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	locks, err := core.New(rdb, core.WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	lease, err := locks.Lock(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	attempt, err := locks.Begin(t.Context(), key, nil)
	if err != nil {
		t.Fatal(err)
	}
	i, err := inspect.New(rdb)
	if err != nil {
		t.Fatal(err)
	}
	page, err := i.Locks(t.Context(), inspect.Filter{})
	if err != nil || len(page.Locks) != 2 {
		t.Fatalf("%+v, %v", page, err)
	}
	records, err := i.Records(t.Context(), inspect.Filter{})
	if err != nil || len(records.Records) != 1 {
		t.Fatalf("%+v, %v", records, err)
	}
	for _, end := range []error{lease.Release(t.Context()), attempt.Abort(t.Context()), locks.Close(t.Context())} {
		if end != nil {
			t.Fatal(end)
		}
	}
	pages, err := console.New(i, console.WithRawKeys())
	if err != nil {
		t.Fatal(err)
	}
	lock, record := page.Locks[0], records.Records[0]
	hold, wait := inspect.Hold{Digest: lock.Key.String()}, inspect.Wait{Digest: lock.Key.String()}
	process := inspect.Process{Holds: []inspect.Hold{hold}, Waits: []inspect.Wait{wait}}
	return map[string][]any{
		"console.Console": {pages},

		"inspect.Filter":      {inspect.Filter{Match: "what the operator has typed"}},
		"inspect.Hold":        {hold},
		"inspect.Holder":      {lock.Holders[0]},
		"inspect.Inspector":   {i},
		"inspect.Key":         {lock.Key, &lock.Key, record.Key},
		"inspect.LeaseID":     {lock.Holders[0].Lease},
		"inspect.Lock":        {lock},
		"inspect.Page":        {page},
		"inspect.Process":     {process},
		"inspect.ProcessPage": {inspect.ProcessPage{Processes: []inspect.Process{process}}},
		"inspect.Record":      {record},
		"inspect.RecordPage":  {records},
		"inspect.Scan":        {page.Scan},
		"inspect.Wait":        {wait},
		"inspect.Waiter":      {inspect.Waiter{}},
	}
}
