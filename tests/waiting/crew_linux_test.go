package waiting

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// A crew is the worker processes of a test, with the servers and the table that
// they share.
type crew struct {
	t        *testing.T
	servers  *redistest.Deployment
	admin    redis.UniversalClient
	admins   []*redis.Client // of each server, where it is asked alone
	orders   orders          // of each worker, but for its number
	table    *table
	deadline time.Time
	members  map[int]*member // that were not killed
	killed   map[int]int64   // when a process was killed
	stood    map[int][]span  // when it stood still
}

// A span is a part of time.
type span struct{ from, to int64 }

// newCrew returns a crew with nobody in it, on these servers. All that it does has
// to end within the patience.
func newCrew(t *testing.T, servers *redistest.Deployment, o orders, patience time.Duration) *crew {
	t.Helper()
	c := &crew{
		t: t, servers: servers, admin: servers.Client(t), deadline: time.Now().Add(patience),
		members: map[int]*member{}, killed: map[int]int64{}, stood: map[int][]span{},
	}
	c.table, o.Table = newTable(t, o.Shape)
	t.Cleanup(func() {
		for _, m := range c.members {
			_ = m.process.Kill()
			<-m.done
		}
	})
	o.Redis = servers.Options()
	c.orders = o
	return c
}

// A member is one worker process.
type member struct {
	process *os.Process
	output  bytes.Buffer // whole once done is closed
	done    chan struct{}
	err     error // set before done is closed
}

// enlist starts a worker process, which plays the test of that name.
func (c *crew) enlist(process int, test string) *member {
	c.t.Helper()
	o := c.orders
	o.Process = process
	text, err := json.Marshal(o)
	if err != nil {
		c.t.Fatal(err)
	}
	m := &member{done: make(chan struct{})}
	cmd := exec.CommandContext(c.t.Context(), os.Args[0], "-test.run=^"+test+"$", "-test.timeout=10m")
	cmd.Env = append(os.Environ(), ordersEnv+"="+string(text))
	cmd.Stdout, cmd.Stderr = &m.output, &m.output
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = time.Second
	started := make(chan error, 1)
	go func() {
		defer close(m.done)
		// Pdeathsig looks at the thread that forked (golang/go#27505).
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		m.process = cmd.Process
		started <- err
		if err == nil {
			m.err = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		c.t.Fatal(err)
	}
	c.members[process] = m
	return m
}

// muster starts so many workers and opens the gate once all stand before it.
func (c *crew) muster(processes int, test string) {
	c.t.Helper()
	for p := range processes {
		c.enlist(p, test)
	}
	for p := range processes {
		c.await("all stand at the gate", func() bool { return c.table.processes[p].ready.Load() != 0 })
	}
	c.table.head.gate.Store(1)
}

// await returns once the condition holds. It fails the test at the deadline, or
// when a worker ends in failure, and tells who is stranded.
func (c *crew) await(what string, condition func() bool) {
	c.t.Helper()
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for !condition() {
		<-ticker.C
		if time.Now().After(c.deadline) {
			c.t.Fatalf("not so in time: %s\nstranded:\n%s\nin Redis: %s", what, c.stranded(), c.inRedis())
		}
		for p, m := range c.members {
			if m.ended() && m.err != nil {
				c.t.Fatalf("process %d ended while this was awaited: %s: %v\n%s", p, what, m.err, m.output.String())
			}
		}
	}
}

// history returns what the table tells, with what the workers cannot tell of
// themselves.
func (c *crew) history() history {
	h := c.table.history()
	for _, one := range h {
		at, dead := c.killed[one.process]
		switch {
		case one.ended != 0:
		case dead:
			one.killed, one.ended = true, max(at, one.granted+1)
		case one.served(): // it is still inside
			one.ended = monotonic()
		}
		for _, still := range c.stood[one.process] {
			if one.asked <= still.to && one.endOfWait() >= still.from {
				one.stood = still.to
			}
		}
	}
	return h
}

// stranded lists who was not served.
func (c *crew) stranded() string {
	found := c.history().unserved(monotonic())
	return strings.Join(found[:min(len(found), 70)], "\n")
}

// inRedis shows the keys and their values.
func (c *crew) inRedis() string {
	ctx := c.t.Context()
	var all []string
	keys, _ := redistest.Keys(ctx, c.admin, "*")
	for _, key := range keys {
		value := c.admin.Get(ctx, key).Val()
		if c.admin.Type(ctx, key).Val() == "list" {
			value = strings.Join(c.admin.LRange(ctx, key, 0, -1).Val(), " ")
		}
		all = append(all, fmt.Sprintf("%s = %s for %v", key, value, c.admin.PTTL(ctx, key).Val()))
	}
	return strings.Join(all, "; ") + "; channels " + strings.Join(c.admin.PubSubChannels(ctx, "*").Val(), " ")
}

// finish returns once all workers have ended, and fails the test if one had a
// fault to tell of.
func (c *crew) finish() {
	c.t.Helper()
	c.await("all workers end", c.finished)
	for p, m := range c.members {
		if m.err != nil {
			c.t.Errorf("process %d: %v\n%s", p, m.err, m.output.String())
		}
	}
}

// finished reports whether all workers have ended.
func (c *crew) finished() bool {
	for _, m := range c.members {
		if !m.ended() {
			return false
		}
	}
	return true
}

func (m *member) ended() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

// kill ends a process as a crash does. Who was inside is not any more.
func (c *crew) kill(process int) {
	c.t.Helper()
	m := c.members[process]
	c.killed[process] = monotonic()
	if err := m.process.Kill(); err != nil {
		c.t.Fatal(err)
	}
	<-m.done
	delete(c.members, process)
	for i := range c.table.head.inside {
		inside := &c.table.head.inside[i]
		if id := inside.Load(); id != 0 && c.table.processOf(id) == process {
			inside.CompareAndSwap(id, 0)
		}
	}
}

// halt makes a process stand still, and returns when it does.
func (c *crew) halt(process int) {
	c.t.Helper()
	c.stood[process] = append(c.stood[process], span{monotonic(), math.MaxInt64})
	c.signal(process, syscall.SIGSTOP)
	stat := fmt.Sprintf("/proc/%d/stat", c.members[process].process.Pid)
	c.await("the process stands still", func() bool {
		text, err := os.ReadFile(stat)
		if err != nil {
			c.t.Fatal(err)
		}
		// "pid (name) state ...", and the name may hold brackets itself.
		return bytes.HasPrefix(text[bytes.LastIndexByte(text, ')')+1:], []byte(" T"))
	})
}

// resume lets it go on.
func (c *crew) resume(process int) {
	c.t.Helper()
	c.signal(process, syscall.SIGCONT)
	stood := c.stood[process]
	stood[len(stood)-1].to = monotonic()
}

func (c *crew) signal(process int, signal syscall.Signal) {
	c.t.Helper()
	if err := c.members[process].process.Signal(signal); err != nil {
		c.t.Fatal(err)
	}
}

// lingering makes the process's next holder stay inside, and returns the row of
// its turn once it does.
func (c *crew) lingering(process int) *turnRow {
	c.t.Helper()
	linger := &c.table.head.linger
	linger.Store(int64(process) + 1)
	c.await("a holder lingers", func() bool { return linger.Load() < 0 })
	return c.table.turn(-linger.Load())
}
