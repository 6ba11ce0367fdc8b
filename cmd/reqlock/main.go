// Command reqlock shows an operator who holds a lock in Redis, who waits for it, and which idempotent
// requests have an unknown outcome. It resolves outcomes and frees locks:
//
//	export REDIS_URL=redis://localhost:6379/0
//	reqlock ls --waiting 1
//	reqlock show account:42
//	reqlock outcomes ls
//
// reqlock help lists the commands, and reqlock help COMMAND describes one. The [page of the command]
// says what each is for.
//
// reqlock lint needs no Redis. It checks the annotations of the services in a compiled descriptor
// set, which protoc writes with --include_imports, and buf build always. As a tool of a module it has
// the version of reqlock in go.mod, which is that of the server:
//
//	protoc --include_imports --descriptor_set_out=set.binpb -I proto -I third_party bank/v1/bank.proto
//	go get -tool github.com/reqlock/reqlock/cmd/reqlock
//	go tool reqlock lint --descriptor_set set.binpb --source user
//
// # Exit status
//
// 0: done. 1: an error, for example of Redis, or mistakes that lint has found. 2: the command line is
// wrong, or lint cannot check the file. 3: there is no such lock, record or process. 4: it has changed
// since it was seen, and nothing was done. (go run exits with 1 instead.)
//
// [page of the command]: https://github.com/reqlock/reqlock/blob/main/docs/command.md
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9/logging"
)

func main() {
	logging.Disable() // the errors of the commands say what is wrong
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second interrupt ends the process
	os.Exit(run(ctx, os.Args[1:], newSession()))
}

// run runs a command line, and returns the exit status.
func run(ctx context.Context, args []string, s session) int {
	out := &output{Writer: s.out}
	s.out = out
	err := dispatch(ctx, args, s)
	if err == nil && out.err != nil {
		err = &failure{nil, out.err}
	}
	return s.report(err)
}
