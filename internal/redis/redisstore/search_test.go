package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/pipeline"
	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// A search reads the records of all batches. A reply about one key does not end it, and any other
// error does.
func TestSearch(t *testing.T) {
	t.Parallel()
	const records = 2*pipeline.Width + 3
	errFound := errors.New("found ends it")
	for name, test := range map[string]struct {
		command, reply string // an error for one of the keys, or for all if the command is scan
		found          error
		open, idle     int    // without an error: how many records are found, and how many of them have an idle time
		want           string // the error
		bound          time.Duration
	}{
		"all":                          {open: records, idle: records},
		"a list in the place of one":   {command: "GETRANGE", reply: "WRONGTYPE Operation against a key", open: records - 1, idle: records - 1},
		"a slot that moves":            {command: "GETRANGE", reply: "MOVED 7 127.0.0.1:1", open: records - 1, idle: records - 1},
		"a server that loads its data": {command: "GETRANGE", reply: "LOADING Redis is loading", want: "LOADING"},
		"no right to the idle time":    {command: "OBJECT", reply: "NOPERM User alice has no permissions", open: records, idle: records - 1},
		"no right to SCAN":             {command: "SCAN", reply: "NOPERM User alice has no permissions", want: "the user of redis may not run SCAN: grant it +scan (NOPERM this user has"},
		"no right to GETRANGE":         {command: "GETRANGE", reply: "NOPERM User alice has no permissions", want: "the user of redis may not run GETRANGE: grant it +getrange (NOPERM this user has"},
		"the caller's error":           {found: errFound, want: errFound.Error()},
		"a server without replies":     {command: "SCAN", bound: 50 * time.Millisecond, want: "no reply within the command timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			over := make(chan struct{})
			defer close(over)
			embedded := miniredis.RunT(t)
			for i := range records {
				_ = embedded.Set(fmt.Sprintf("{p:k%d}:r", i), storetest.EncodeRecord(hash{"s": "R", "t": storetest.Bob1, "n": "1", "f": "print", "u": "1"}))
				_ = embedded.Set(fmt.Sprintf("{p:done%d}:r", i), storetest.EncodeRecord(hash{"s": "D", "t": storetest.Bob1, "f": "print"}))
			}
			embedded.SetTime(time.Now().Add(time.Minute))
			embedded.Server().SetPreHook(func(client *server.Peer, command string, args ...string) (answered bool) {
				switch {
				case command != test.command, command != "SCAN" && !strings.Contains(strings.Join(args, " "), "k7}"):
					return false
				case test.reply == "":
					<-over
					return false
				}
				client.WriteError(test.reply)
				return true
			})
			rdb := redis.NewClient(&redis.Options{Addr: embedded.Addr(), ContextTimeoutEnabled: true})
			defer func() { _ = rdb.Close() }()
			s := newStore(t, rdb)
			open, idle := 0, 0
			err := s.Search(t.Context(), cmp.Or(test.bound, time.Minute), func(found []store.OpenRecord) error {
				for _, record := range found {
					if open++; record.Idle > 0 {
						idle++
					}
					if !strings.HasPrefix(record.Key, "k") || record.Lock != "p:"+record.Key || record.Reported != nameOf(storetest.Bob1) {
						t.Errorf("found %+v", record)
					}
				}
				return test.found
			})
			if err == nil && (test.want != "" || open != test.open || idle != test.idle) || err != nil && (test.want == "" || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%d records, %d with an idle time, error %v; want %+v", open, idle, err, test)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := s.Search(ctx, time.Second, nil); !errors.Is(err, context.Canceled) {
				t.Errorf("after the end of its context: %v", err)
			}
		})
	}
}
