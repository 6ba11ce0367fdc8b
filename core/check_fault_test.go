package core_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestCheckNamesTheProblemOfAServer(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args   []string
		set    func(*testing.T, *redis.Client)
		client func(*redis.Options)
		want   []string // the prefix of the server's error, or ""; then texts in the error of Check
	}{
		"no password":     {args: []string{"--requirepass", "secret"}, client: as("", ""), want: []string{"NOAUTH", "set Password", "Username"}},
		"wrong password":  {args: []string{"--requirepass", "secret"}, client: as("", "secret2"), want: []string{"WRONGPASS", "set Username and Password"}},
		"wrong user":      {client: as("alice", "secret"), want: []string{"WRONGPASS", "set Username and Password"}},
		"a replica":       {args: []string{"--replicaof", "127.0.0.1 1"}, want: []string{"READONLY", "connect to the master", "ReplicaOnly"}},
		"full":            {set: configured("maxmemory", "1"), want: []string{"OOM", "raise maxmemory"}},
		"no replicas":     {args: []string{"--min-replicas-to-write", "1"}, want: []string{"NOREPLICAS", "min-replicas-to-write"}},
		"no EVALSHA":      {args: disabled("EVALSHA"), want: []string{"ERR unknown command", "EVALSHA", "scripts"}},
		"no EVAL":         {args: disabled("EVAL"), want: []string{"ERR unknown command", "EVAL", "scripts"}},
		"no SUBSCRIBE":    {args: disabled("SUBSCRIBE"), want: []string{"ERR unknown command", "SUBSCRIBE", "pub/sub"}},
		"no PUBLISH":      {args: disabled("PUBLISH"), want: []string{"", "PUBLISH", "pub/sub"}},
		"no LPOS":         {args: disabled("LPOS"), want: []string{"ERR Unknown", "LPOS", "redis 7.0"}},
		"no SET":          {args: disabled("SET"), want: []string{"ERR unknown command", "SET"}},
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
			if prefix := test.want[0]; prefix != "" {
				var reply redis.Error
				if !errors.As(err, &reply) || !strings.HasPrefix(reply.Error(), prefix) {
					t.Errorf("the error does not wrap the server's error: %v", reply)
				}
			}
		})
	}
}

func TestCheckOfBusyServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--busy-reply-threshold", "20")
	rdb := server.Client(t)
	repair := busy(t, server.Client(t, errorReplies["BUSY"].admin))
	wantFinding(t, newLocker(t, rdb).Check(t.Context()), "SCRIPT KILL")
	repair()
	noError(t, newLocker(t, rdb).Check(t.Context()))
}

func TestCheckWithoutAServer(t *testing.T) {
	t.Parallel()
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
	if refusal, _ := core.RefusalOf(err); refusal.Code != "deadline" || !strings.HasPrefix(err.Error(), "reqlock: check: ") {
		t.Errorf("got %v, %+v", err, refusal)
	}
	why := errors.New("the probe is over")
	ended, end := context.WithCancelCause(t.Context())
	end(why)
	err = locks.Check(ended)
	wantError(t, err, core.ErrUnavailable, context.Canceled, why)
	if refusal, _ := core.RefusalOf(err); refusal.Code != "canceled" {
		t.Errorf("got %v, %+v", err, refusal)
	}
	proxy.HealDropped() // a connection of rdb may still miss what was dropped
	noError(t, newLocker(t, proxy.Client(t), patient).Check(t.Context()))

	server.Kill()
	slow := server.Client(t) // its dialer retries for longer than the command timeout
	wantFinding(t, newLocker(t, slow, core.WithCommandTimeout(300*time.Millisecond)).Check(t.Context()), "cannot be reached", "address")
	down := server.Client(t, func(o *redis.Options) { o.DialerRetries = 1 })
	wantFinding(t, newLocker(t, down).Check(t.Context()), "cannot be reached", "address")
	_ = down.Close()
	wantFinding(t, newLocker(t, down).Check(t.Context()), "client is closed")
}

func TestCheckOfClosedLocker(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, newEmbedded(t))
	noError(t, locks.Close(t.Context()))
	err := locks.Check(t.Context())
	wantError(t, err, core.ErrClosed)
	if refusal, _ := core.RefusalOf(err); refusal.Code != "closing" {
		t.Errorf("got %v", err)
	}
}

func TestCheckWarnsOfEviction(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", "volatile-ttl")
	server.Grant("+info")
	rdb := server.Client(t, deadlines)
	events := &recorder{}
	var log logBuffer
	locks := newLocker(t, rdb, log.all(core.WithObserver(events.record))...)
	noError(t, locks.Check(t.Context()))
	warned := events.of(core.Warned)
	if len(warned) != 1 || len(events.all()) != 1 || warned[0].Err == nil || warned[0].Key.Raw() != "" {
		t.Fatalf("events: %+v", events.all())
	}
	for _, policy := range []string{"volatile-ttl", "noeviction"} {
		if !strings.Contains(warned[0].Err.Error(), policy) {
			t.Errorf("%v does not name %s", warned[0].Err, policy)
		}
	}
	if text := log.String(); !strings.Contains(text, `level=WARN msg="lock warned" error=`) {
		t.Errorf("logged %s", text)
	}
	for _, step := range []struct {
		limit, policy string
		warns         bool
	}{
		{"100mb", "volatile-ttl", false}, // was told
		{"100mb", "allkeys-lru", true},
		{"0", "allkeys-lru", false},
		{"100mb", "noeviction", false},
		{"100mb", "allkeys-lru", true}, // again
	} {
		configured("maxmemory", step.limit)(t, rdb)
		configured("maxmemory-policy", step.policy)(t, rdb)
		before := len(events.all())
		for range 2 { // the first one tells it
			noError(t, locks.Check(t.Context()))
		}
		switch told := events.all()[before:]; {
		case !step.warns && len(told) == 0:
		case step.warns && len(told) == 1 && strings.Contains(told[0].Err.Error(), step.policy):
		default:
			t.Errorf("%+v: events %+v", step, told)
		}
	}
}

func TestConcurrentChecks(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rdb := server.Client(t)
	locks := newLocker(t, rdb)
	failed := make(chan error, 8)
	for range 8 {
		go func() { failed <- locks.Check(t.Context()) }()
	}
	for range 8 {
		noError(t, suite.Receive(t, "a check returns", failed))
	}
	closeLocker(t, locks)
	wantNoKeys(t, rdb)
}

// oldServer is a hook that replies to SET with NX and GET as a server before Redis 7 does.
type oldServer struct{ storetest.OpenCircuit }

func (oldServer) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); cmd.Name() == "set" && slices.Contains(args, any("nx")) && slices.Contains(args, any("get")) {
			cmd.SetErr(storetest.ServerError("ERR syntax error"))
			return cmd.Err()
		}
		return next(ctx, cmd)
	}
}

func (o oldServer) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		one := o.ProcessHook(func(ctx context.Context, cmd redis.Cmder) error { return next(ctx, []redis.Cmder{cmd}) })
		for _, cmd := range cmds {
			_ = one(ctx, cmd)
		}
		return nil
	}
}

// The first lock is refused with the version that is needed, not the first one that waits.
func TestServerBeforeRedis7IsNamed(t *testing.T) {
	t.Parallel()
	rdb := redistest.Reuse(t).Client(t)
	rdb.AddHook(oldServer{})
	locks := newLocker(t, rdb)
	_, err := locks.Lock(t.Context(), "k")
	for name, err := range map[string]error{"Lock": err, "Check": locks.Check(t.Context())} {
		if err == nil || !strings.Contains(err.Error(), "older than redis 7.0") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := rdb.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}
