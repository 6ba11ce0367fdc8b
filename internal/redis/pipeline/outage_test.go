package pipeline

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// gets sends a call, and ends its sends with these replies: a string, an error of the server, or
// errBroken for none.
func (f *fake) gets(replies ...any) {
	f.t.Helper()
	f.send("c", time.Second)
	for _, reply := range replies {
		if b := await(f, "a batch", f.batches); reply == any(errBroken) {
			b.breakDown(errBroken)
		} else {
			b.reply(reply)
		}
		synctest.Wait()
	}
}

// A reported outage has the times and the counts of what happened.
func TestOutageIsReportedAtItsBeginAndAtItsEnd(t *testing.T) {
	t.Parallel()
	noAuth := storetest.ServerError("NOAUTH Authentication required.")
	for name, test := range map[string]struct {
		happens func(f *fake)
		lasted  []time.Duration // of the reports
	}{
		"a command fails and succeeds when it is sent again": {func(f *fake) {
			f.gets(errBroken, "ok")
		}, nil},
		"calls fail, then one succeeds": {func(f *fake) {
			f.gets(errBroken, errBroken)
			time.Sleep(time.Second)
			f.gets(errBroken, errBroken)
			f.gets("ok")
		}, []time.Duration{0, time.Second}},
		"no reply": {func(f *fake) {
			f.send("c", time.Second)
			time.Sleep(time.Second)
			first, second := await(f, "a batch", f.batches), await(f, "a batch", f.batches)
			f.gets("ok")
			first.breakDown(errBroken)
			second.reply("ok")
		}, []time.Duration{0, 1500 * time.Millisecond}}, // the lane pauses before it sends the last call
		"a call that began before the success fails after it": {func(f *fake) {
			begun := time.Now()
			f.gets(noAuth)
			time.Sleep(time.Second)
			f.gets("ok")
			f.health.outage.fail(&f.acquires, begun, errBroken, false)
		}, []time.Duration{0, time.Second}},
		"a call fails soon after another has succeeded": {func(f *fake) {
			f.gets(noAuth)
			f.gets("ok")
			time.Sleep(outageQuiet / 2)
			f.gets(noAuth)
			time.Sleep(time.Second)
			f.gets("ok")
		}, []time.Duration{0, outageQuiet/2 + time.Second}},
		"a call fails long after another has succeeded": {func(f *fake) {
			f.gets(noAuth)
			f.gets("ok")
			time.Sleep(2 * outageQuiet)
			f.gets(noAuth)
		}, []time.Duration{0, 1, 0}},
		"the server fails now and then": {func(f *fake) {
			for range 10 {
				f.gets(errBroken, errBroken)
				f.gets("ok")
				time.Sleep(10 * time.Second)
			}
		}, []time.Duration{0, 1, 0, 1, 0, 1, 0, 1, 0, 50 * time.Second}}, // quiet for 1, 2, 4, 8 and 16 s
		"only a lane that was refused in part ends it": {func(f *fake) {
			f.gets(storetest.ServerError("OOM command not allowed"))
			c := f.call("c", time.Second)
			f.Do(&c.Call, Release)
			await(f, "a batch", f.batches).reply("ok")
			time.Sleep(time.Minute)
			f.gets("ok")
		}, []time.Duration{0, time.Minute}},
		"an error about one key": {func(f *fake) { f.gets(storetest.ServerError("WRONGTYPE ...")) }, nil},
		"closed":                 {func(f *fake) { f.gets(noAuth); f.gets("ok"); f.Close() }, []time.Duration{0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, command.Replicas{}, func(t *testing.T, f *fake) {
				var reports []store.Outage
				f.OnOutage(func(o store.Outage) { reports = append(reports, o) })
				test.happens(f)
				time.Sleep(time.Minute)
				synctest.Wait()
				for i, o := range reports {
					if i >= len(test.lasted) || o.Lasted != test.lasted[i] || o.Server != "10.0.0.1:6379" || o.Err == nil {
						t.Errorf("report %d: %+v", i, o)
					}
				}
				if len(reports) != len(test.lasted) {
					t.Errorf("%d reports, want %d", len(reports), len(test.lasted))
				}
			})
		})
	}
}

func TestOutageCountsItsCallers(t *testing.T) {
	t.Parallel()
	inBubble(t, command.Replicas{}, func(t *testing.T, f *fake) {
		var last store.Outage
		f.OnOutage(func(o store.Outage) { last = o })
		f.CountRefused([]byte("c"))
		f.gets("ok")                // so that caller had another reason
		f.CountRefused([]byte("c")) // its wait was shorter than a command
		f.gets(storetest.ServerError("NOAUTH Authentication required."))
		f.CountRefused([]byte("c"))
		f.CountRefused([]byte("c"))
		f.CountRefused([]byte("c"))
		f.CountUnlocked([]byte("c"))
		f.gets("ok")
		time.Sleep(time.Minute)
		synctest.Wait()
		if last.Refused != 3 || last.Unlocked != 1 || last.Lasted == 0 {
			t.Errorf("%+v", last)
		}
	})
}
