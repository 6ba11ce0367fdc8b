package redistest

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// A router sends the commands of the code under test by a client with only Rights, and the
// commands of the test itself by a client of the administrator. The commands of reqlock tell
// go-redis not to retry them: this tells the two apart.
type router struct {
	tb    testing.TB
	admin redis.UniversalClient
}

// route makes the client, which does not authenticate, send the commands of the test itself
// by the client of the administrator.
func route(tb testing.TB, client, admin redis.UniversalClient) {
	client.AddHook(router{tb, admin})
}

// DialHook changes nothing.
func (router) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook routes a command.
func (r router) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if isUnprivileged(cmd) {
			return next(ctx, cmd)
		}
		r.mustBeOfTest(cmd)
		return r.admin.Process(ctx, cmd)
	}
}

// ProcessPipelineHook routes a pipeline, as the first of its commands.
func (r router) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if len(cmds) == 0 || isUnprivileged(cmds[0]) {
			return next(ctx, cmds)
		}
		r.mustBeOfTest(cmds[0])
		pipeline := r.admin.Pipeline()
		if cmds[0].Name() == "multi" {
			pipeline, cmds = r.admin.TxPipeline(), cmds[1:len(cmds)-1]
		}
		_ = pipeline.BatchProcess(ctx, cmds...) // Exec sends them
		_, err := pipeline.Exec(ctx)
		return err
	}
}

// isUnprivileged reports whether a command is of the code under test, or of go-redis at the
// beginning of a connection.
func isUnprivileged(cmd redis.Cmder) bool {
	switch args := cmd.Args(); cmd.Name() {
	case "hello", "auth", "select":
		return true
	case "client":
		return len(args) > 1 && (args[1] == "setinfo" || args[1] == "maint_notifications" || args[1] == "setname")
	default:
		return cmd.NoRetry()
	}
}

// product is the folder of the code under test that sends commands, below the root of the
// module. The frames of stacks are searched for it.
const product = "/internal/redis/"

// mustBeOfTest fails the test if the code under test is about to send a command as
// the administrator.
func (r router) mustBeOfTest(cmd redis.Cmder) {
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	for {
		frame, more := frames.Next()
		switch {
		case !more || strings.HasSuffix(frame.File, "_test.go"):
			return
		case strings.Contains(frame.File, product):
			r.tb.Errorf("the code under test sends %s as a test does: go-redis may retry it", cmd.Name())
			return
		}
	}
}
