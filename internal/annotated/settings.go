package annotated

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/reqlock/reqlock/adapter"
	"github.com/reqlock/reqlock/core"
)

// Settings are the durations of a rule. nil is not set.
type Settings struct{ Wait, TTL, Retention *time.Duration }

// Options returns the options of core.
func (s Settings) Options() []core.Option {
	var options []core.Option
	if s.Wait != nil {
		options = append(options, core.WithWait(*s.Wait))
	}
	if s.TTL != nil {
		options = append(options, core.WithTTL(*s.TTL))
	}
	if s.Retention != nil {
		options = append(options, core.WithRetention(*s.Retention))
	}
	return options
}

// or returns the settings with the defaults for those that are not set.
func (s Settings) or(defaults Settings) Settings {
	if s.Wait == nil {
		s.Wait = defaults.Wait
	}
	if s.TTL == nil {
		s.TTL = defaults.TTL
	}
	return s
}

// texts returns the settings as texts: "wait 2s".
func (s Settings) texts() (texts []string) {
	for _, setting := range []struct {
		name  string
		value *time.Duration
	}{{"wait", s.Wait}, {"ttl", s.TTL}, {"retention", s.Retention}} {
		if setting.value != nil {
			texts = append(texts, fmt.Sprintf("%s %v", setting.name, *setting.value))
		}
	}
	return texts
}

// wait, ttl and retention return the durations of a rule, or nil if they are not set.
func (p place) wait(d *durationpb.Duration) *time.Duration {
	return p.in("wait").duration(d, "WithWait", core.WithWait)
}

func (p place) ttl(d *durationpb.Duration) *time.Duration {
	return p.in("ttl").duration(d, "WithTTL", core.WithTTL)
}

func (p place) retention(d *durationpb.Duration) *time.Duration {
	return p.in("retention").duration(d, "WithRetention", core.WithRetention)
}

// duration returns a duration, or nil if it is not set. The option of core, which has this name,
// checks its limits.
func (p place) duration(d *durationpb.Duration, name string, option func(time.Duration) core.Option) *time.Duration {
	if d == nil {
		return nil
	}
	if d.CheckValid() != nil {
		p.faultf("%d seconds and %d nanoseconds are no duration", d.GetSeconds(), d.GetNanos())
		return nil
	}
	value := d.AsDuration()
	p.check(name+": ", adapter.CheckOptions(nil, option(value)))
	return &value
}

// same sets the duration that all locks of a method have in common. One that is not set has the
// value of the others.
func (p place) same(common **time.Duration, d *time.Duration) {
	switch {
	case *common == nil:
		*common = d
	case d != nil && *d != **common:
		p.faultf("%v differs from the %v of another lock of the method, and a call takes its locks together", *d, **common)
	}
}
