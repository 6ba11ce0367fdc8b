package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"time"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/examples/demoredis"
)

const (
	crashPrefix = "REQLOCK_PAYMENTS_CRASH_PREFIX" // tells the process that is killed the prefix of its key
	crashTTL    = 2 * time.Second                 // of its lock
)

// crash runs this program as another process that takes the lock of carol's account, and kills that
// process. It returns the time just before the process took the lock.
func (s *site) crash(ctx context.Context) (asked time.Time, err error) {
	holder := exec.CommandContext(ctx, os.Args[0]) //nolint:gosec // this program itself
	holder.Env = append(os.Environ(), crashPrefix+"="+s.prefix, "REDIS_URL="+s.redisURL)
	holder.Stderr = os.Stderr
	_, stdinErr := holder.StdinPipe() // its end ends the holder, if this program ends first
	stdout, stdoutErr := holder.StdoutPipe()
	if err := errors.Join(stdinErr, stdoutErr, holder.Start()); err != nil {
		return asked, err
	}
	var micros int64
	_, err = fmt.Fscanln(stdout, &micros)
	_ = holder.Process.Kill()
	_ = holder.Wait() // an error: the holder was killed
	if err != nil {
		return asked, fmt.Errorf("the other process took no lock: %w", err)
	}
	return time.UnixMicro(micros), nil
}

// holdIfAsked makes this process the one that crash kills, if crash has started it. It takes the lock,
// and holds it until the process is killed or its parent has ended. It does not release the lock.
func holdIfAsked() {
	prefix, asked := os.LookupEnv(crashPrefix)
	if !asked {
		return
	}
	ctx := context.Background()
	redis, err := demoredis.Connect(ctx, os.Getenv("REDIS_URL"))
	if err != nil {
		log.Fatal(err)
	}
	locks := core.Must(core.New(redis.Client, core.WithPrefix(prefix), core.WithTTL(crashTTL)))
	before := time.Now()
	if _, err := locks.TryLock(ctx, "account:carol"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(before.UnixMicro())
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}

// afterCrash sends two transfers of an account after the holder of its lock was killed. The first
// does not wait. The second waits for the end of the TTL.
func afterCrash(r *round) string {
	r.open()
	asked, err := r.crash(r.ctx)
	if err != nil {
		return err.Error()
	}
	first := r.ask(request{do: "transfer", user: "carol", transfer: transfer{"dave", 100}})
	second := r.ask(request{do: "settle", user: "carol", transfer: transfer{"dave", 100}})
	took, when := time.Since(asked), "2 s (TTL)"
	// 10 ms are for the resolution of clocks. A waiter checks soon after the TTL; 3 s are for a busy machine.
	if took < crashTTL-10*time.Millisecond || took > crashTTL+3*time.Second {
		when = took.String()
	}
	return fmt.Sprintf("%s, then %s after %s", first.status, second.status, when)
}
