package readiness

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync/atomic"
	"time"

	"github.com/reqlock/reqlock/internal/redis/command"
	"github.com/reqlock/reqlock/internal/store"
)

// fullEvery is how long short runs may follow a full run. A full run also checks what a short run
// does not use: pub/sub, and each script.
const fullEvery = time.Hour

// Passed is what the last full run of the Checks of one Locker found, if it found no problem. While
// the servers are the same, the next Checks are short. The zero value demands a full run.
type Passed struct{ last atomic.Pointer[pass] }

// A pass is a full run that found no problem.
type pass struct {
	at      time.Time
	servers map[string]string // the state of each server, by its address
}

// runShort takes and frees one lock on each server. It reports whether the servers are in the state
// in which a full run has found no problem. Otherwise a full run must follow, which also finds the
// reason.
func (c *Check) runShort(ctx context.Context) (warnings []error, ok bool) {
	last := c.passed.last.Load()
	if last == nil || time.Since(last.at) >= fullEvery {
		return nil, false
	}
	targets, err := c.targets(ctx)
	if err != nil {
		return nil, false
	}
	servers, warnings, err := c.probeEach(ctx, targets, (*probe).look)
	return warnings, err == nil && maps.Equal(servers, last.servers)
}

// look takes a lock, frees it by a script that the server must have, and reads INFO.
func (p *probe) look(ctx context.Context) (report, error) {
	return p.lookBy(ctx, "evalsha", p.scripts.Rights.SHA)
}

// lookBy is look with EVALSHA or EVAL.
func (p *probe) lookBy(ctx context.Context, eval string, rights any) (report, error) {
	if err := p.take(ctx, 12); err != nil {
		return report{}, err
	}
	refused, err := p.free(ctx, 12, eval, rights)
	if err != nil {
		return report{}, err
	}
	info := p.info(ctx)
	// A server that restarts has another run_id. It has no run_id if INFO is refused. Then the lack of
	// the script shows a restart, unless another process has checked the server since.
	state := strings.Join([]string{info["run_id"], info["redis_version"], info["role"], refused}, "\n")
	return report{state: state, warning: p.warning(ctx, info)}, nil
}

// take takes the key with the n-th token.
func (p *probe) take(ctx context.Context, n uint64) error {
	taken, err := do(ctx, p.store.Take, store.TakeRequest{Target: p.request(n)})
	var fault *store.Fault
	p.mayHaveKeys = err == nil || errors.As(err, &fault) && fault.Unknown
	if err != nil {
		return err
	}
	return verify(taken.Granted)
}

// free runs rights.lua, which deletes the key if it has the n-th token. It returns the commands that
// the server would refuse.
func (p *probe) free(ctx context.Context, n uint64, eval string, rights any) (refused string, err error) {
	args := []any{eval, rights, 1, p.name(), p.request(n).Token}
	for _, needed := range append(p.commands(), p.subscriptions()...) {
		args = append(append(args, len(needed)), needed...)
	}
	freed := command.New(3, args)
	if err := p.send(ctx, freed); err != nil {
		return "", err
	}
	refused, err = freed.Text()
	if err != nil {
		return "", errNotKept
	}
	p.mayHaveKeys = false
	return refused, nil
}

// info returns the fields of INFO, or none if the user may not read it. It names no section, because
// some proxies accept only one.
func (p *probe) info(ctx context.Context) map[string]string {
	info := command.New(0, []any{"info"})
	if p.send(ctx, info) != nil {
		return nil
	}
	text, _ := info.Text()
	return command.InfoFields(text)
}

// warning returns the warning about a server, or nil.
func (p *probe) warning(ctx context.Context, info map[string]string) error {
	if policy := evictionPolicy(info); policy != "" {
		return &Finding{addr: p.target.addr, text: "maxmemory-policy is " + policy + ", so that redis evicts locks when its memory is full: " +
			"set maxmemory-policy to noeviction"}
	}
	return p.adviseOnKinds(ctx, info)
}

// evictionPolicy returns the maxmemory-policy of a server that evicts keys when its memory is
// full. It returns "" if the server evicts no keys, or does not report its policy.
func evictionPolicy(info map[string]string) (policy string) {
	policy = info["maxmemory_policy"]
	if limit := info["maxmemory"]; limit == "" || limit == "0" || policy == "noeviction" {
		return ""
	}
	return policy
}
