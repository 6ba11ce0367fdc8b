package core_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
)

// unknown disables a command of a server.
func unknown(command string) []string { return []string{"--rename-command", command, ""} }

// configured sets what a server has to find out by itself.
func configured(name, value string) func(*testing.T, *redis.Client) {
	return func(t *testing.T, admin *redis.Client) {
		t.Helper()
		if err := admin.ConfigSet(t.Context(), name, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

//faults:row 20, 22, 25: what Check says of it
func TestCheckSaysWhatIsWrongWithAServer(t *testing.T) {
	tests := map[string]struct {
		args   []string
		set    func(*testing.T, *redis.Client)
		client func(*redis.Options)
		want   []string // beginning with what the server or the client says, if anything
	}{
		"no password":     {args: []string{"--requirepass", "secret"}, client: as("", ""), want: []string{"NOAUTH", "set Username and Password"}},
		"wrong password":  {args: []string{"--requirepass", "secret"}, client: as("", "secret2"), want: []string{"WRONGPASS", "set Username and Password"}},
		"wrong user":      {client: as("alice", "secret"), want: []string{"WRONGPASS", "set Username and Password"}},
		"a replica":       {args: []string{"--replicaof", "127.0.0.1 1"}, want: []string{"READONLY", "connect to the master", "ReplicaOnly"}},
		"full":            {set: configured("maxmemory", "1"), want: []string{"OOM", "raise maxmemory"}},
		"no replicas":     {args: []string{"--min-replicas-to-write", "1"}, want: []string{"NOREPLICAS", "min-replicas-to-write"}},
		"no EVALSHA":      {args: unknown("EVALSHA"), want: []string{"ERR unknown command", "EVALSHA", "scripts"}},
		"no EVAL":         {args: unknown("EVAL"), want: []string{"ERR unknown command", "EVAL", "scripts"}},
		"no SUBSCRIBE":    {args: unknown("SUBSCRIBE"), want: []string{"ERR unknown command", "SUBSCRIBE", "pub/sub"}},
		"no PUBLISH":      {args: unknown("PUBLISH"), want: []string{"", "PUBLISH", "pub/sub"}},
		"too old":         {args: unknown("LPOS"), want: []string{"ERR Unknown", "LPOS", "6.0.6"}},
		"no SET":          {args: unknown("SET"), want: []string{"ERR unknown command", "SET"}},
		"a cluster node":  {args: []string{"--cluster-enabled", "yes"}, want: []string{"CLUSTERDOWN", "CLUSTER INFO"}},
		"another channel": {args: strings.Fields("--user default on nopass ~* resetchannels &x* +@all"), want: []string{"NOPERM", "&reqlock:*"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, test.args...)
			admin := server.Client(t)
			if test.set != nil {
				test.set(t, admin)
			}
			client := server.Client(t)
			if test.client != nil {
				client = server.Client(t, test.client)
			}
			err := newLocker(t, client, core.WithCommandTimeout(2*time.Second)).Check(t.Context())
			t.Log(err)
			wantFinding(t, err, test.want[1:]...)
			if says := test.want[0]; says != "" {
				var reply redis.Error
				if !errors.As(err, &reply) || !strings.HasPrefix(reply.Error(), says) {
					t.Errorf("the server's error is not behind it: %v", reply)
				}
			}
		})
	}
}

func TestCheckOfAServerThatIsBusy(t *testing.T) {
	server := redistest.Start(t, "--busy-reply-threshold", "20")
	rdb := server.Client(t)
	running := make(chan struct{})
	go func() {
		defer close(running)
		_ = server.Client(t, func(o *redis.Options) { o.ReadTimeout = -1 }).Eval(t.Context(), "while true do end", nil).Err()
	}()
	await(t, "a busy server", func() bool {
		err := rdb.Ping(t.Context()).Err()
		return err != nil && strings.HasPrefix(err.Error(), "BUSY")
	})
	wantFinding(t, newLocker(t, rdb).Check(t.Context()), "SCRIPT KILL")
	if err := rdb.ScriptKill(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	<-running
	if err := newLocker(t, rdb).Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestCheckWithoutAServer(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	rdb := proxy.Client(t)
	locks := newLocker(t, rdb, core.WithCommandTimeout(time.Second))
	proxy.Partition()
	wantFinding(t, locks.Check(t.Context()), "does not answer within the command timeout", "WithCommandTimeout")

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := locks.Check(ctx)
	wantError(t, err, core.ErrUnavailable, context.DeadlineExceeded)
	if outcome, _ := core.OutcomeOf(err); outcome.Code != "deadline" || !strings.HasPrefix(err.Error(), "reqlock: check: ") {
		t.Errorf("got %v, %+v", err, outcome)
	}
	why := errors.New("probe is over")
	gone, end := context.WithCancelCause(t.Context())
	end(why)
	err = locks.Check(gone)
	wantError(t, err, core.ErrUnavailable, context.Canceled, why)
	if outcome, _ := core.OutcomeOf(err); outcome.Code != "canceled" {
		t.Errorf("got %v, %+v", err, outcome)
	}
	proxy.HealDropped()
	if err := newLocker(t, rdb, patient).Check(t.Context()); err != nil {
		t.Errorf("healed: %v", err)
	}

	server.Kill()
	slow := server.Client(t) // to say that nobody listens
	wantFinding(t, newLocker(t, slow, core.WithCommandTimeout(300*time.Millisecond)).Check(t.Context()), "cannot be reached", "address")
	down := server.Client(t, func(o *redis.Options) { o.DialerRetries = 1 })
	wantFinding(t, newLocker(t, down).Check(t.Context()), "cannot be reached", "address")
	_ = down.Close()
	wantFinding(t, newLocker(t, down).Check(t.Context()), "client is closed")
}

func TestCheckOfAClosedLocker(t *testing.T) {
	locks := newLocker(t, newEmbedded(t))
	if err := locks.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := locks.Check(t.Context())
	wantError(t, err, core.ErrClosed)
	if outcome, _ := core.OutcomeOf(err); outcome.Code != "closing" {
		t.Errorf("got %v", err)
	}
}

// Messages that nobody passes on are found, and so is what they have to do with.
func TestCheckOfAServerWhoseMessagesAreLost(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	locks := newLocker(t, proxy.Client(t), core.WithCommandTimeout(time.Second))
	let, _ := proxy.HoldCommand(redistest.Named("SUBSCRIBE"))
	wantFinding(t, locks.Check(t.Context()), "subscription", "pub/sub")
	let()
}

//faults:row 24
func TestCheckWarnsOfEviction(t *testing.T) {
	server := redistest.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", "volatile-ttl")
	server.Grant("+info")
	rdb := server.Client(t)
	heard := &events{}
	var log bytes.Buffer
	locks := newLocker(t, rdb, core.WithObserver(heard.observe),
		core.WithObserver(core.SlogObserver(slog.New(slog.NewTextHandler(&log, nil)))))
	if err := locks.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	warned := heard.of(core.Warned)
	if len(warned) != 1 || len(heard.all) != 1 || warned[0].Err == nil || warned[0].Key.Raw() != "" {
		t.Fatalf("told %+v", heard.all)
	}
	for _, word := range []string{"volatile-ttl", "noeviction"} {
		if !strings.Contains(warned[0].Err.Error(), word) {
			t.Errorf("%v does not say %s", warned[0].Err, word)
		}
	}
	if text := log.String(); !strings.Contains(text, `level=WARN msg="lock warned" error=`) {
		t.Errorf("logged %s", text)
	}
	for name, value := range map[string]string{"maxmemory": "0", "maxmemory-policy": "noeviction"} {
		configured("maxmemory", "100mb")(t, rdb)
		configured("maxmemory-policy", "allkeys-lru")(t, rdb)
		configured(name, value)(t, rdb)
		if err := locks.Check(t.Context()); err != nil || len(heard.all) != 1 {
			t.Errorf("%s %s: %v, told %+v", name, value, err, heard.all[1:])
		}
	}
}

func TestChecksAtTheSameTime(t *testing.T) {
	server := redistest.Start(t)
	rdb := server.Client(t)
	locks := newLocker(t, rdb)
	failed := make(chan error)
	for range 8 {
		go func() { failed <- locks.Check(t.Context()) }()
	}
	for range 8 {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	wantNoKeys(t, rdb)
}

func TestCheckOfACluster(t *testing.T) {
	cluster := redistest.StartCluster(t)
	rdb := cluster.Client(t)
	wantNoneLeft := func() {
		t.Helper()
		for _, master := range cluster.Masters() {
			wantNoKeys(t, master.Client(t))
		}
	}
	for _, node := range cluster.Nodes() {
		node.Grant(append(redistest.PrefixRights("{app}:"), "+info")...)
	}
	for _, prefix := range []string{"reqlock:", "{app}:"} {
		if err := newLocker(t, rdb, core.WithPrefix(prefix)).Check(t.Context()); err != nil {
			t.Errorf("prefix %q: %v", prefix, err)
		}
		wantNoneLeft()
	}
	for i, master := range cluster.Masters() {
		admin := master.Client(t)
		configured("min-replicas-to-write", "3")(t, admin)
		wantFinding(t, newLocker(t, rdb).Check(t.Context()), master.Addr(), "min-replicas-to-write")
		configured("min-replicas-to-write", "0")(t, admin)
		configured("maxmemory-policy", "allkeys-lfu")(t, admin)
		configured("maxmemory", "1gb")(t, admin)
		heard := &events{}
		if err := newLocker(t, rdb, core.WithObserver(heard.observe)).Check(t.Context()); err != nil {
			t.Errorf("master %d: %v", i, err)
		}
		if warned := heard.of(core.Warned); len(warned) != 1 || !strings.HasPrefix(warned[0].Err.Error(), "127.0.0.1:") {
			t.Errorf("told %v", warned)
		}
	}
	node := newLocker(t, cluster.Masters()[0].Client(t))
	for range 8 { // of which some have a key that lies on the node
		wantFinding(t, node.Check(t.Context()), "redis.NewClusterClient")
	}
}

// A server names the arguments of a command that it does not know. Neither an error
// nor what lies behind it does.
func TestNoErrorTellsAKey(t *testing.T) {
	const key = "a-private-key"
	for _, command := range []string{"EVALSHA", "SET"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			locks := newLocker(t, redistest.Start(t, unknown(command)...).Client(t))
			var all []error
			lease, err := locks.Lock(t.Context(), key)
			if err == nil { // the release needs the command
				err = lease.Release(t.Context())
			}
			all = append(all, err)
			_, err = locks.Begin(t.Context(), key, []byte("f"))
			all = append(all, err, locks.Check(t.Context()))
			for i, err := range all {
				if err == nil {
					t.Errorf("error %d: none", i)
				}
				for ; err != nil; err = errors.Unwrap(err) {
					text := fmt.Sprintf("%v %+v", err, err)
					if strings.Contains(text, key) || strings.Contains(text, "args beginning with") {
						t.Errorf("error %d: %T tells too much: %s", i, err, text)
					}
				}
			}
		})
	}
}
