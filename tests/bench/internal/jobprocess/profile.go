package jobprocess

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"time"
)

// profileEnvironment names the file for the CPU profile of a child. "" is none.
const profileEnvironment = "REQLOCK_BENCH_PROFILE"

// profileKey is the key of a context that has the beginning of the names of CPU profiles.
type profileKey struct{}

// WithProfiles returns a context with which each process of Run writes the CPU profile of its job
// into a file. The names of the files begin with prefix.
func WithProfiles(ctx context.Context, prefix string) context.Context {
	return context.WithValue(ctx, profileKey{}, prefix)
}

// profileOf returns the name of the profile of a process, or "" for none.
func profileOf(ctx context.Context, process int) string {
	if prefix, ok := ctx.Value(profileKey{}).(string); ok {
		return fmt.Sprintf("%s.%d.pprof", prefix, process)
	}
	return ""
}

// runProfiled runs the job, and writes its CPU profile into the file, unless that is "".
func runProfiled(ctx context.Context, job Job, start time.Time, file string) (result any, err error) {
	if file == "" {
		return job.Run(ctx, start)
	}
	profile, err := os.Create(file) //nolint:gosec // the path is the parent's
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, profile.Close()) }()
	if err := pprof.StartCPUProfile(profile); err != nil {
		return nil, err
	}
	defer pprof.StopCPUProfile()
	return job.Run(ctx, start)
}
