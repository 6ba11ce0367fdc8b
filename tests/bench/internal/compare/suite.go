// Package compare runs the contestants of a suite side by side, and prints the medians of their
// figures.
package compare

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/programtb"
	"github.com/reqlock/reqlock/tests/bench/internal/redisserver"
	"github.com/reqlock/reqlock/tests/bench/internal/report"
)

// A Suite is one load, and the contestants that it compares.
type Suite struct {
	Name        string
	Title       string
	Contestants []string // reqlock first
	// Start starts the servers of the suite.
	Start func(tb testing.TB) *redisserver.Servers
	// Run runs a contestant once, and returns its figures: the same ones for all contestants, the
	// rate first. An error beside figures is printed, and the figures count.
	Run func(ctx context.Context, on *redisserver.Servers, contestant string) ([]report.Figure, error)
	// Baseline returns the contestant whose rate is 100 %. Without it, no contestant has a share.
	Baseline func(contestant string) string
	Picture  Picture
}

// A Picture is a bar chart of one figure of a suite.
type Picture struct {
	File        string // its name, without ".svg"; "" for none
	Title, Note string
	Figure      string // its name
}

// Measure runs each contestant as often as told, and prints a dot for each run. Each repetition
// begins with another contestant, so that neither the order nor a busy period of the machine
// favors one of them. It returns the results even if there were errors.
func (s Suite) Measure(ctx context.Context, repetitions int, progress io.Writer) (*Results, error) {
	results := newResults(s)
	var errs []error
	outcome := programtb.Run(ctx, s.Name, func(tb testing.TB) { //nolint:contextcheck // servers end with tb
		fmt.Fprintf(progress, "%s ", s.Name)
		defer fmt.Fprintln(progress)
		on := s.Start(tb)
		for repetition := range repetitions {
			for i := range s.Contestants {
				if tb.Context().Err() != nil {
					return
				}
				contestant := s.Contestants[(repetition+i)%len(s.Contestants)]
				figures, err := s.once(tb.Context(), on, contestant)
				if err != nil {
					errs = append(errs, fmt.Errorf("%s: %s: %w", s.Name, contestant, err))
				}
				results.add(contestant, figures)
				fmt.Fprint(progress, ".")
			}
		}
	})
	return results, errors.Join(append(errs, outcome.Err())...)
}

// once runs a contestant on empty servers.
func (s Suite) once(ctx context.Context, on *redisserver.Servers, contestant string) ([]report.Figure, error) {
	if err := on.Clear(ctx); err != nil {
		return nil, err
	}
	return s.Run(ctx, on, contestant)
}
