package redistest

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// A router gives the commands of the code under test to a client that has no more
// than Rights, and those of the test itself to an administrator's. What reqlock
// sends must not be sent twice by go-redis, and says so: that tells them apart.
type router struct {
	tb    testing.TB
	admin redis.UniversalClient
}

// route makes the client, which signs in as nobody, send the test's own commands
// by way of the administrator's client.
func route(tb testing.TB, client, admin redis.UniversalClient) {
	client.AddHook(router{tb, admin})
}

// DialHook changes nothing.
func (router) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook routes a command.
func (r router) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if staysHere(cmd) {
			return next(ctx, cmd)
		}
		r.mustBeOfTest(cmd)
		return r.admin.Process(ctx, cmd)
	}
}

// ProcessPipelineHook routes a pipeline, as the first of its commands.
func (r router) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if len(cmds) == 0 || staysHere(cmds[0]) {
			return next(ctx, cmds)
		}
		r.mustBeOfTest(cmds[0])
		pipeline := r.admin.Pipeline()
		if cmds[0].Name() == "multi" {
			pipeline, cmds = r.admin.TxPipeline(), cmds[1:len(cmds)-1]
		}
		_ = pipeline.BatchProcess(ctx, cmds...) // it only gathers them
		_, err := pipeline.Exec(ctx)
		return err
	}
}

// staysHere tells whether a command is one of the code under test, or one with
// which go-redis begins a connection.
func staysHere(cmd redis.Cmder) bool {
	switch args := cmd.Args(); cmd.Name() {
	case "hello", "auth", "select":
		return true
	case "client":
		return len(args) > 1 && (args[1] == "setinfo" || args[1] == "maint_notifications" || args[1] == "setname")
	default:
		return cmd.NoRetry()
	}
}

// product is where the code under test lies that sends commands, below the module's
// root: what the frames of a stack are searched for.
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
			r.tb.Errorf("the code under test sends %s as a test would: it must not be sent twice", cmd.Name())
			return
		}
	}
}
