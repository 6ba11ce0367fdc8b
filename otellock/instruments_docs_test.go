package otellock_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/otellock"
)

// TestDocsListTheInstruments compares the table of docs/observability.md with what is collected.
func TestDocsListTheInstruments(t *testing.T) {
	t.Parallel()
	instruments, reader := newInstruments(t)
	for _, event := range everyEvent() {
		instruments.Observe(event)
		event.Err = core.ErrUnavailable
		instruments.Observe(event)
	}
	instruments.Observe(core.Event{Kind: core.Refused, Err: core.ErrUnavailable})
	if err := instruments.Watch(locktest.New(t).Locker); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, m := range gather(t, reader) {
		want = append(want, m.Name+" "+m.Unit+" "+strings.Join(ownAttributes(m), " "))
	}
	page, err := os.ReadFile("../docs/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.ReplaceAll(line, "`", ""), "|")
		if len(cells) != 6 || !strings.HasPrefix(cells[1], " reqlock.") {
			continue
		}
		attributes := strings.FieldsFunc(cells[4], func(r rune) bool { return r == ' ' || r == ',' })
		slices.Sort(attributes)
		got = append(got, strings.TrimSpace(cells[1])+" "+strings.TrimSpace(cells[3])+" "+strings.Join(attributes, " "))
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("docs/observability.md has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// ownAttributes returns the sorted attributes of an instrument but for those that all have.
func ownAttributes(m metricdata.Metrics) []string {
	var sets []attribute.Set
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, point := range data.DataPoints {
			sets = append(sets, point.Attributes)
		}
	case metricdata.Histogram[float64]:
		for _, point := range data.DataPoints {
			sets = append(sets, point.Attributes)
		}
	}
	var keys []string
	for _, set := range sets {
		for _, key := range set.ToSlice() {
			if key.Key != otellock.LockNameKey && key.Key != otellock.OperationKey && key.Key != otellock.SharedKey {
				keys = append(keys, string(key.Key))
			}
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// TestAlertRules runs the unit tests of the alerts. It needs promtool of Prometheus: where that is
// not installed the test is skipped, or fails if REQLOCK_REQUIRE_REDIS is set.
func TestAlertRules(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		suite.SkipOrFail(t, "%v", err)
	}
	for _, args := range [][]string{{"check", "rules", "alerts.yaml"}, {"test", "rules", "alerts_test.yaml"}} {
		command := exec.CommandContext(t.Context(), promtool, args...)
		command.Dir = "grafana"
		if said, err := command.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, said)
		}
	}
}
