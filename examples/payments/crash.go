package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
)

// holderVar is the environment variable of the process that takes a lock and is
// killed. Its value is a holderConfig in JSON.
const holderVar = "REQLOCK_PAYMENTS_HOLDER"

// A holderConfig describes the lock that the killed process takes.
type holderConfig struct {
	URL    string // of the Redis
	Prefix string
	Key    string
	TTL    time.Duration
}

// A crash is the kill of a lock's holder. The TTL of the lock began between the two
// times.
type crash struct {
	Asked time.Time // just before the holder took the lock
	Died  time.Time // after the holder's process had ended, so that it cannot renew the lock
}

// killHolder starts this program in another process that takes a lock, and kills that
// process.
func killHolder(ctx context.Context, what holderConfig) (crash, error) {
	setting, err := json.Marshal(what)
	if err != nil {
		return crash{}, err
	}
	program, err := os.Executable()
	if err != nil {
		return crash{}, fmt.Errorf("cannot find this program: %w", err)
	}
	var stderr bytes.Buffer
	holder := exec.CommandContext(ctx, program) //nolint:gosec // this program itself
	holder.Env = append(os.Environ(), holderVar+"="+string(setting))
	holder.Stderr = &stderr
	stdin, err := holder.StdinPipe() // the holder ends when this program ends
	if err != nil {
		return crash{}, err
	}
	defer stdin.Close()
	report, err := holder.StdoutPipe()
	if err != nil {
		return crash{}, err
	}
	if err := holder.Start(); err != nil {
		return crash{}, fmt.Errorf("cannot start another process: %w", err)
	}
	taken, err := bufio.NewReader(report).ReadString('\n')
	killed := holder.Process.Kill()
	_ = holder.Wait() // always an error: the holder was killed
	died := time.Now()
	if err != nil || killed != nil {
		return crash{}, fmt.Errorf("the other process took no lock: %w: %s", errors.Join(err, killed), stderr.Bytes())
	}
	asked, err := time.Parse(time.RFC3339Nano, taken[:len(taken)-1])
	if err != nil {
		return crash{}, fmt.Errorf("the other process took no lock: %w", err)
	}
	return crash{Asked: asked, Died: died}, nil
}

// runHolder makes this process the holder if holderVar is set. Then it does not
// return.
func runHolder() {
	setting := os.Getenv(holderVar)
	if setting == "" {
		return
	}
	if err := hold(context.Background(), setting); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(1)
}

// hold takes a lock, prints the time just before, and holds the lock until the
// process is killed or its parent has ended. It never releases the lock.
func hold(ctx context.Context, setting string) error {
	var what holderConfig
	if err := json.Unmarshal([]byte(setting), &what); err != nil {
		return err
	}
	options, err := redis.ParseURL(what.URL)
	if err != nil {
		return err
	}
	client := redis.NewClient(options)
	locks, err := core.New(client, core.WithPrefix(what.Prefix), core.WithTTL(what.TTL))
	if err != nil {
		return err
	}
	if err := client.Ping(ctx).Err(); err != nil { // connects before the measured time
		return err
	}
	asked := time.Now()
	if _, err := locks.TryLock(ctx, what.Key); err != nil {
		return err
	}
	fmt.Println(asked.Format(time.RFC3339Nano))
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
