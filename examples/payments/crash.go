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

// holderVar is the environment variable that makes this program the process
// that takes a lock and is killed. It holds a holding.
const holderVar = "REQLOCK_PAYMENTS_HOLDER"

// A holding is what the process that is killed has to take.
type holding struct {
	URL    string // of the Redis
	Prefix string
	Key    string
	TTL    time.Duration
}

// A crash is a lock whose holder was killed. Its TTL began between two moments.
type crash struct {
	Asked time.Time // the holder was about to take the lock
	Died  time.Time // the holder was gone, and could not renew it any more
}

// crashed starts this program once more, has it take a lock, and kills it.
func crashed(ctx context.Context, what holding) (crash, error) {
	setting, err := json.Marshal(what)
	if err != nil {
		return crash{}, err
	}
	program, err := os.Executable()
	if err != nil {
		return crash{}, fmt.Errorf("cannot find this program: %w", err)
	}
	var complaint bytes.Buffer
	holder := exec.CommandContext(ctx, program) //nolint:gosec // this very program
	holder.Env = append(os.Environ(), holderVar+"="+string(setting))
	holder.Stderr = &complaint
	life, err := holder.StdinPipe() // the holder ends when this program does
	if err != nil {
		return crash{}, err
	}
	defer life.Close()
	report, err := holder.StdoutPipe()
	if err != nil {
		return crash{}, err
	}
	if err := holder.Start(); err != nil {
		return crash{}, fmt.Errorf("cannot start another process: %w", err)
	}
	taken, err := bufio.NewReader(report).ReadString('\n')
	killed := holder.Process.Kill()
	_ = holder.Wait() // it says that the holder was killed
	died := time.Now()
	if err != nil || killed != nil {
		return crash{}, fmt.Errorf("the other process took no lock: %w: %s", errors.Join(err, killed), complaint.Bytes())
	}
	asked, err := time.Parse(time.RFC3339Nano, taken[:len(taken)-1])
	if err != nil {
		return crash{}, fmt.Errorf("the other process took no lock: %w", err)
	}
	return crash{Asked: asked, Died: died}, nil
}

// holdIfAsked makes this process the holder, if it was started to be that, and
// never returns then.
func holdIfAsked() {
	setting := os.Getenv(holderVar)
	if setting == "" {
		return
	}
	if err := hold(context.Background(), setting); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(1)
}

// hold takes a lock, says when it asked for it, and holds it until the process
// is killed, or the one that started it is gone. It never releases it.
func hold(ctx context.Context, setting string) error {
	var what holding
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
	if err := client.Ping(ctx).Err(); err != nil { // so that connecting does not count
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
