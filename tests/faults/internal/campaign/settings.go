package campaign

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"strings"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/fault"
)

// Settings are the options of the command line.
type Settings struct {
	// Mode says what the program does.
	Mode Mode
	// Names matches the faults to include; all by default.
	Names *regexp.Regexp
	// On lists the deployments to include.
	On []fault.Deployment
	// Seed is the seed of the first run of each fault. If Seeded is set, the command line
	// gave it, and Count repeats it; otherwise each further run has the next seed.
	Seed   uint64
	Seeded bool
	// Count is how often each fault runs on each deployment, in runs by name.
	Count int
	// For is how long the long plan lasts.
	For time.Duration
	// Parallel is how many runs are executed at a time.
	Parallel int
	// Out is the directory for failures. History is the file to validate.
	Out, History string
}

// A Mode is one of the tasks of the program.
type Mode int

// The modes.
const (
	ByName Mode = iota
	Short
	Long
	Validate
)

const usage = `Usage: faults [flags]

Without -short, -long and -validate it runs each fault that -run names, on each
deployment that it can happen to.

`

// Parse reads a command line. It prints to w what is wrong with the command line, and
// returns flag.ErrHelp if the command line asks for help.
func Parse(w io.Writer, args []string) (Settings, error) {
	s := Settings{Names: regexp.MustCompile("")}
	var short, long bool
	var run, on string
	flags := flag.NewFlagSet("faults", flag.ContinueOnError)
	flags.SetOutput(w)
	flags.Usage = func() {
		fmt.Fprint(w, usage)
		flags.PrintDefaults()
	}
	flags.BoolVar(&short, "short", false, "the plan for each change: some minutes")
	flags.BoolVar(&long, "long", false, "all faults on all deployments, until the time of -for is over")
	flags.StringVar(&s.History, "validate", "", "validate the history in this `file` again")
	flags.DurationVar(&s.For, "for", 8*time.Hour, "how long -long goes on")
	flags.StringVar(&run, "run", "", "only faults whose names match this `regexp`")
	flags.StringVar(&on, "on", "", "only on these `deployments`, with commas: there are "+fault.DeploymentNames())
	flags.Uint64Var(&s.Seed, "seed", 0, "the seed of the first run (default a random one); with -count that of all")
	flags.IntVar(&s.Count, "count", 1, "how often each fault is executed by name: with the -seed, or else with the seeds after a random one")
	flags.IntVar(&s.Parallel, "parallel", 5, "how many runs are executed at a time; of runs on several servers or with more clients at most two, of runs on a quorum one")
	flags.StringVar(&s.Out, "out", defaultOut, "the `directory` for what is found")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	err := errors.Join(
		s.setMode(map[Mode]bool{Short: short, Long: long, Validate: s.History != ""}),
		s.setNames(run, flags.Args()), s.setDeployments(on), s.checkNumbers())
	if err != nil {
		fmt.Fprintln(w, err)
		flags.Usage()
		return s, err
	}
	flags.Visit(func(f *flag.Flag) { s.Seeded = s.Seeded || f.Name == "seed" })
	if !s.Seeded {
		s.Seed = uint64(rand.Uint32()) //nolint:gosec // not a secret, and short enough to be typed
	}
	return s, nil
}

// setMode sets the mode. At most one mode may be set.
func (s *Settings) setMode(asked map[Mode]bool) error {
	for mode, is := range asked {
		switch {
		case !is:
		case s.Mode != ByName:
			return errors.New("-short, -long and -validate go one at a time")
		default:
			s.Mode = mode
		}
	}
	return nil
}

// setNames sets the pattern of names.
func (s *Settings) setNames(run string, rest []string) (err error) {
	if len(rest) > 0 {
		return fmt.Errorf("%q is too much", rest)
	}
	if s.Names, err = regexp.Compile(run); err != nil {
		s.Names = regexp.MustCompile("")
	}
	return err
}

func (s *Settings) setDeployments(on string) error {
	if on == "" {
		s.On = fault.Deployments()
		return nil
	}
	for name := range strings.SplitSeq(on, ",") {
		where, err := fault.DeploymentOf(name)
		if err != nil {
			return fmt.Errorf("-on: %w", err)
		}
		s.On = append(s.On, where)
	}
	return nil
}

// checkNumbers returns an error if a number is out of range.
func (s *Settings) checkNumbers() error {
	switch {
	case s.Count < 1:
		return fmt.Errorf("-count %d: nothing to do", s.Count)
	case s.Parallel < 1:
		return fmt.Errorf("-parallel %d: nothing to do", s.Parallel)
	case s.For <= 0:
		return fmt.Errorf("-for %v: nothing to do", s.For)
	}
	return nil
}
