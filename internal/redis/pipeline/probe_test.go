package pipeline

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
)

// While no command is served, there is one probe at a time, after pauses that grow. The
// outage after that is noticed as the first one was.
func TestEachOutageIsProbed(t *testing.T) {
	t.Parallel()
	inBubble(t, command.Replicas{}, func(t *testing.T, f *fake) {
		f.Watch(func([]byte) command.Command { return command.New(1, []any{"get", "probe"}) })
		for outage := range 3 {
			last := f.elapsed()
			c := f.send("c", time.Second)
			f.next(last, "c").breakDown(errBroken)
			f.next(last, "again c").breakDown(errBroken)
			c.wantReply(last, errBroken)
			if since, why := f.Unserved([]byte("c")); since.Sub(f.begun) != last || !errors.Is(why, errBroken) {
				t.Errorf("outage %d: unserved since %v because of %v", outage, since.Sub(f.begun), why)
			}
			for _, span := range []time.Duration{50 * ms, 100 * ms, 200 * ms, 400 * ms, 500 * ms, 500 * ms} {
				b := await(f, "a probe", f.batches)
				if pause := b.at - last; len(b.cmds) != 1 || b.names()[0] != "probe" || pause < span/2 || pause > span {
					t.Errorf("outage %d: %v after %v, want a probe after up to %v", outage, b.names(), pause, span)
				}
				last = b.at
				b.breakDown(errBroken)
				f.next(last, "probe").breakDown(errBroken) // each call is sent twice
				synctest.Wait()
			}
			served := "c"
			if outage == 0 {
				f.send("c", time.Second)
			} else {
				served = "probe"
			}
			if b := await(f, "the last command", f.batches); b.names()[0] != served {
				t.Errorf("outage %d: %v", outage, b.names())
			} else {
				b.reply("ok")
			}
			synctest.Wait()
			if !f.AllServed() {
				t.Errorf("outage %d: not over", outage)
			}
			time.Sleep(time.Minute)
			f.wantNoBatch()
		}
	})
}
