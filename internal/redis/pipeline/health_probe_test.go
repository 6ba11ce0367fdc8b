package pipeline

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
)

// probeOf returns a probe with the key in its name.
func probeOf(key []byte) command.Command {
	return command.New(1, []any{"get", "probe " + string(key)})
}

// While no command is served, there is one probe at a time, after pauses that grow. The
// outage after that is noticed as the first one was.
func TestEachOutageIsProbed(t *testing.T) {
	t.Parallel()
	inBubble(t, command.Replicas{}, func(t *testing.T, f *fake) {
		f.Watch(probeOf)
		for outage := range 3 {
			last, name := f.elapsed(), fmt.Sprint("c", outage)
			probe := "probe " + name
			c := f.send(name, time.Second)
			f.next(last, name).breakDown(errBroken)
			f.next(last, "again "+name).breakDown(errBroken)
			c.wantReply(last, errBroken)
			if since, why := f.Unserved([]byte(name)); since.Sub(f.begun) != last || !errors.Is(why, errBroken) {
				t.Errorf("outage %d: unserved since %v because of %v", outage, since.Sub(f.begun), why)
			}
			for _, span := range []time.Duration{50 * ms, 100 * ms, 200 * ms, 400 * ms, 500 * ms, 500 * ms} {
				b := await(f, "a probe", f.batches)
				if pause := b.at - last; len(b.cmds) != 1 || b.names()[0] != probe || pause < span/2 || pause > span {
					t.Errorf("outage %d: %v after %v, want a probe after up to %v", outage, b.names(), pause, span)
				}
				last = b.at
				b.breakDown(errBroken)
				f.next(last, probe).breakDown(errBroken) // each call is sent twice
				synctest.Wait()
			}
			served := name
			if outage == 0 {
				f.send(name, time.Second)
			} else {
				served = probe
			}
			if b := await(f, "the last command", f.batches); b.names()[0] != served {
				t.Errorf("outage %d: %v", outage, b.names())
			} else {
				b.reply("ok")
			}
			synctest.Wait()
			if !f.AllServed() || f.health.isUnserved.Load() {
				t.Errorf("outage %d: not over", outage)
			}
			time.Sleep(time.Minute)
			f.wantNoBatch()
		}
	})
}

// A timer that fires after the server has served a command, or after Close, sends no probe.
func TestLateTimerSendsNoProbe(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*fake){
		"served": func(f *fake) {
			f.health.served(time.Now())
			f.health.probe() // of a timer that fired just before
		},
		"closed": func(f *fake) { f.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, command.Replicas{}, func(_ *testing.T, f *fake) {
				f.Watch(probeOf)
				f.health.failed(time.Now(), errBroken, []byte("c"))
				end(f)
				time.Sleep(time.Minute)
				f.wantNoBatch()
			})
		})
	}
}
