// Package compare runs the contestants of a suite side by side, and prints the medians of their
// figures.
package compare

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/programtb"
	"github.com/reqlock/reqlock/tests/bench/internal/jobprocess"
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
	// MostRepetitions limits how often each contestant runs. 0 is no limit.
	MostRepetitions int
}

// A Picture is a bar chart of one figure of a suite.
type Picture struct {
	File        string // its name, without ".svg"; "" for none
	Title, Note string
	Figure      string // its name
}

// Measure runs each contestant as often as told, and prints a dot for each run. Each repetition
// begins with another contestant, so that neither the order nor a busy period of the machine
// favors one of them. It returns the results even if there were errors. CPU profiles go to the
// directory profiles, unless it is "".
func (s Suite) Measure(ctx context.Context, repetitions int, profiles string, progress io.Writer) (*Results, error) {
	if s.MostRepetitions > 0 {
		repetitions = min(repetitions, s.MostRepetitions)
	}
	results := &Results{s, make(map[string][][]report.Figure)}
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
				ctx := tb.Context()
				if profiles != "" {
					name := strings.NewReplacer(" ", "-", "/", "-").Replace(s.Name + "." + contestant)
					ctx = jobprocess.WithProfiles(ctx, fmt.Sprintf("%s.%d", filepath.Join(profiles, name), repetition))
				}
				if err := on.Clear(ctx); err != nil {
					errs = append(errs, err)
					return
				}
				figures, err := s.Run(ctx, on, contestant)
				if err != nil {
					errs = append(errs, fmt.Errorf("%s: %s: %w", s.Name, contestant, err))
				}
				if figures != nil {
					results.runs[contestant] = append(results.runs[contestant], figures)
				}
				fmt.Fprint(progress, ".")
			}
		}
	})
	return results, errors.Join(append(errs, outcome.Err())...)
}
