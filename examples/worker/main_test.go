package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A process of the test is this binary with the step at which it dies, "" for none.
const diesAt = "WORKER_DIES_AT"

func TestMain(m *testing.M) {
	step, isProcess := os.LookupEnv(diesAt)
	if !isProcess {
		suite.Main(m)
		return
	}
	options, err := redis.ParseURL(os.Getenv("REDIS_URL"))
	if err != nil {
		panic(err)
	}
	rdb := redis.NewClient(options)
	onStep = func(name string) {
		if name == step {
			rdb.RPush(context.Background(), "steps", name, "a process dies")
			self, _ := os.FindProcess(os.Getpid())
			_ = self.Kill()
			select {}
		}
		rdb.RPush(context.Background(), "steps", name)
	}
	main()
}

// start starts a process and returns the first line that it prints.
func start(t *testing.T, server *redistest.Server, step string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], append(args, "-ttl", "5s", "-grace", "5s")...)
	cmd.Env = append(os.Environ(), diesAt+"="+step, "REDIS_URL=redis://"+server.Addr())
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("it says nothing: %v", err)
	}
	return strings.TrimSpace(line)
}

// order posts an order for account 7. It returns the answer without its body, or nil without one.
func order(t *testing.T, address, key string) *http.Response {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/accounts/7/orders", http.NoBody)
	if err != nil {
		t.Error(err)
		return nil
	}
	r.Header.Set("Idempotency-Key", `"`+key+`"`)
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return nil // the service has died
	}
	_ = answer.Body.Close()
	return answer
}

// Whichever process dies at whichever step: never two act under the lock, and it is free afterwards.
func TestAProcessDiesAtEachStep(t *testing.T) {
	t.Parallel()
	steps := []string{"", "service begins", "service ends", "handed over", "enqueued", "received", "worker begins", "worker ends"}
	for _, step := range steps {
		t.Run("at "+step, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			rdb := server.Client(t)
			start(t, server, step, "-only", "worker")
			address := start(t, server, step, "-only", "service", "-addr", "127.0.0.1:0")
			answers := make([]*http.Response, 3)
			var all sync.WaitGroup
			for i := range answers {
				all.Go(func() { answers[i] = order(t, address, fmt.Sprint("order ", i)) })
			}
			all.Wait()
			taken := func() []string { return rdb.LRange(t.Context(), "steps", 0, -1).Val() }
			if step == "" {
				testAnswers(t, rdb, address, answers)
			} else {
				suite.Eventually(t, "a process dies", func() bool { return slices.Contains(taken(), "a process dies") })
			}

			locks := core.Must(core.New(rdb))
			defer func() { _ = locks.Close(context.Background()) }()
			lease, err := locks.With(core.WithWait(time.Minute)).Lock(t.Context(), "account:7")
			if err != nil {
				t.Fatalf("the key is not free: %v", err)
			}
			rdb.RPush(t.Context(), "steps", "test begins", "test ends")
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
			acting := ""
			for i, name := range taken() {
				who, what, _ := strings.Cut(name, " ")
				switch {
				case what == "begins" && acting != "":
					t.Errorf("step %d: the %s acts beside the %s: %q", i, who, acting, taken())
				case what == "begins":
					acting = who
				case what == "ends" || name == "a process dies" && step == acting+" begins":
					acting = ""
				}
			}
		})
	}
}

// testAnswers checks that each order is done, and that a copy gets the same answer.
func testAnswers(t *testing.T, rdb *redis.Client, address string, answers []*http.Response) {
	t.Helper()
	for i, answer := range answers {
		if answer == nil || answer.StatusCode != http.StatusAccepted {
			t.Fatalf("order %d: %+v", i, answer)
		}
		location := answer.Header.Get("Location")
		if again := order(t, address, fmt.Sprint("order ", i)); again == nil || again.Header.Get("Location") != location || again.StatusCode != http.StatusAccepted {
			t.Errorf("a copy of order %d got %+v, want %s", i, again, location)
		}
		suite.Eventually(t, "the order is done", func() bool {
			return rdb.HGet(t.Context(), "order:"+strings.TrimPrefix(location, "/orders/"), "state").Val() == "done"
		})
	}
}
