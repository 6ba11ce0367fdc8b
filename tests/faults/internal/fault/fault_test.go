package fault

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// signs are what the users of the paths have observed. They are also the Workload of the test: a
// few processes, whose failures are only recorded.
type signs struct {
	mu      sync.Mutex
	errors  map[string]bool
	slowest time.Duration // the slowest command
	torn    bool          // a reply came in several reads
	calls   []string      // Kill, Stop and Continue
}

func (o *signs) record(change func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change()
}

func (*signs) Processes() []int { return []int{0, 1, 2} }
func (*signs) AwaitGrants(int)  {}
func (o *signs) Kill(int)       { o.record(func() { o.calls = append(o.calls, "kill") }) }
func (o *signs) Stop(int)       { o.record(func() { o.calls = append(o.calls, "stop") }) }
func (o *signs) Continue(int)   { o.record(func() { o.calls = append(o.calls, "continue") }) }

// use sends commands to a server on the path of a process until ctx ends.
func (o *signs) use(ctx context.Context, route string) {
	for ctx.Err() == nil {
		err := o.useConnection(ctx, route)
		o.record(func() { o.errors[err.Error()] = true })
		time.Sleep(time.Millisecond)
	}
}

// useConnection sends commands on a new connection. It returns the error that ends them.
func (o *signs) useConnection(ctx context.Context, route string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", route)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	for reply := make([]byte, 1000); ctx.Err() == nil; time.Sleep(time.Millisecond) {
		begun, text := time.Now(), ""
		_ = conn.SetDeadline(begun.Add(readTimeout))
		// The reply is the value, which is long enough for several tiny packets.
		_, err := io.WriteString(conn, "*4\r\n$3\r\nSET\r\n$3\r\nkey\r\n$60\r\n"+strings.Repeat("x", 60)+"\r\n$3\r\nGET\r\n")
		reads := 0
		for err == nil && (!strings.HasSuffix(text, "\r\n") || text == "$60\r\n") {
			var n int
			n, err = conn.Read(reply)
			text += string(reply[:n])
			reads++
		}
		o.record(func() {
			o.slowest = max(o.slowest, time.Since(begun))
			o.torn = o.torn || err == nil && reads > 1
			if strings.HasPrefix(text, "-") {
				o.errors[text] = true
			}
		})
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

const (
	testTTL     = 400 * time.Millisecond
	readTimeout = testTTL / 4
)

// evidence returns what users observe of a fault; nil if the fault fails by itself when it does
// nothing: it awaits an effect on the server, or the validator finds grants that are impossible.
func evidence() map[string]func(*signs) bool {
	sees := func(texts ...string) func(*signs) bool {
		return func(o *signs) bool {
			for text := range o.errors {
				if slices.ContainsFunc(texts, func(part string) bool { return strings.Contains(text, part) }) {
					return true
				}
			}
			return false
		}
	}
	slow := func(least time.Duration) func(*signs) bool {
		return func(o *signs) bool { return o.slowest >= least }
	}
	calls := func(names ...string) func(*signs) bool {
		return func(o *signs) bool { return slices.Equal(o.calls, names) }
	}
	ended, silent, refused := sees("EOF", "reset", "closed", "refused"), sees("timeout"), sees("refused")
	reset := sees("connection reset", "timeout") // on a busy machine no reply may come in time
	return map[string]func(*signs) bool{
		"server-crashes": ended, "server-crashes-and-is-empty": ended, "server-is-away-for-long": ended, "server-is-away-for-long-and-is-empty": ended,
		"server-stands-still": silent, "server-stands-still-beyond-fail-fast": silent, "answers-late": silent,
		"connections-are-cut": ended, "connections-are-reset": reset, "connections-are-refused": refused,
		"one-is-partitioned": silent, "one-is-partitioned-and-all-is-lost": silent, "all-are-partitioned": silent, "all-are-partitioned-and-all-is-lost": silent,
		"commands-are-swallowed": silent, "replies-are-swallowed": silent,
		"network-is-slow": slow(10 * time.Millisecond), "network-is-throttled": slow(10 * time.Millisecond), "packets-are-tiny": func(o *signs) bool { return o.torn || silent(o) },
		"replies-are-lost": ended, "replies-never-come": silent, "commands-are-late": silent,
		"process-is-killed": calls("kill", "kill", "kill"), "process-stands-still": calls("stop", "continue", "stop", "continue"),
		"holders-release-early": calls("kill", "kill"),

		"quorum-servers-crash": ended, "quorum-servers-crash-and-keep-data": ended, "quorum-servers-crash-in-turn": ended, "quorum-servers-stand-still": silent,
		"quorum-servers-are-slow": slow(10 * time.Millisecond), "quorum-servers-are-late": slow(readTimeout), "quorum-servers-are-refused": refused,
		"quorum-servers-are-cut": ended, "quorum-servers-are-reset": reset, "quorum-servers-get-no-commands": silent,
		"quorum-servers-send-no-replies": silent, "quorum-servers-pause": silent, "quorum-servers-are-out-of-memory": sees("OOM"),
		"quorum-servers-are-replicas": sees("READONLY"),
	}
}

// A fault that does nothing would pass for one that the lock survives. The faults of Sentinels and
// Clusters await the effects that their names say.
func TestFaultsAreObserved(t *testing.T) {
	known := evidence()
	for _, f := range slices.Concat(serverFaults(), networkFaults()) {
		if known[f.Name] == nil && f.Name != "subscriptions-are-cut" { // the server kills them
			t.Errorf("no evidence is known for %s", f.Name)
		}
	}
	for _, f := range All() {
		isObserved := known[f.Name]
		if isObserved == nil {
			continue
		}
		delete(known, f.Name)
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			o := &signs{errors: map[string]bool{}}
			s, open := newSystem(t, f, o)
			ctx, stop := context.WithCancel(t.Context())
			var users sync.WaitGroup
			t.Cleanup(func() { stop(); users.Wait() })
			for _, process := range o.Processes() {
				for _, route := range s.Network.Path(process).Routes() {
					users.Go(func() { o.use(ctx, route) })
				}
			}
			f.Inject(s)
			o.record(func() {
				if !isObserved(o) {
					t.Errorf("not observed: the slowest command took %v, torn reads %v, calls %v, errors %v", o.slowest, o.torn, o.calls, o.errors)
				}
			})
			for name, n := range open {
				if n != 0 {
					t.Errorf("%q has not ended", name)
				}
			}
		})
	}
	for name := range known {
		t.Errorf("there is no fault %s", name)
	}
}

// newSystem returns the system of a fault, and how often each disruption has begun without an end.
func newSystem(t *testing.T, f Fault, workload Workload) (s *System, open map[string]int) {
	t.Helper()
	open = map[string]int{}
	s = &System{
		TB: t, Workload: workload, Random: rand.New(rand.NewPCG(1, 2)), Keys: []string{"reqlock:a"}, TTL: testTTL,
		Disrupt: func(name string, _ Loss) func() {
			open[name]++
			return func() { open[name]-- }
		},
	}
	var addrs []string
	if slices.Contains(f.On, OnServer) {
		s.Server = redistest.Start(t, f.Args...)
		s.Admin, addrs = s.Server.Client(t), []string{s.Server.Addr()}
	} else {
		for range 3 {
			server := redistest.Start(t, f.Args...)
			s.Quorum = append(s.Quorum, Voter{server, server.Client(t)})
			addrs = append(addrs, server.Addr())
		}
		s.Admin = s.Quorum[0].Admin
	}
	s.Network = redistest.NewNetwork(t, addrs...)
	return s, open
}

// Writes that the new master confirms are not lost: a loss ends when the old master does not serve
// any more, and not later. Until it ends, it excuses a second holder.
func TestLossEndsWithTheOldMaster(t *testing.T) {
	t.Parallel()
	for name, depose := range map[string]func(master *redistest.Server){
		"it ends":         (*redistest.Server).Kill,
		"it is a replica": func(master *redistest.Server) { master.Client(t).ReplicaOf(t.Context(), "127.0.0.1", "1") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			master := redistest.Start(t)
			ended := make(chan struct{})
			end := sync.OnceFunc(func() { close(ended) })
			s := &System{TB: t, Disrupt: func(string, Loss) func() { return end }}
			s.replaceServing("the master is replaced", master, everything, func() {
				if suite.IsClosed(ended) {
					t.Error("the loss has ended before anything has happened")
				}
				depose(master)
				s.await("the end of the loss", func() bool { return suite.IsClosed(ended) })
			})
		})
	}
}
