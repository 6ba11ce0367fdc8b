package oteltest

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/core/locktest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
	"github.com/reqlock/reqlock/otellock"
)

// grafana is the folder of the alerts and of the dashboard.
const grafana = root + "/otellock/grafana"

// A real Prometheus scrapes a program to whose locks happens all that can happen. Each expression of the
// alerts and of the dashboard finds its series, and the alerts fire. TestScenariosOnRedis of otellock
// shows that these events come.
func TestPrometheusFiresAlerts(t *testing.T) {
	t.Parallel()
	exporter, registry := newExporter(t)
	instruments, err := otellock.New(otellock.WithMeterProvider(exporter))
	if err != nil {
		t.Fatal(err)
	}
	if err := instruments.Watch(locktest.New(t).Locker); err != nil {
		t.Fatal(err)
	}
	program := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.Cleanup(program.Close)
	p := startPrometheus(t, program.Listener.Addr().String(), withoutDelay(t))
	for _, event := range onceEach() {
		instruments.Observe(event)
	}
	want := []string{
		"ReqlockRedisOutage()", "ReqlockRedisUnavailable(account)", "ReqlockUnlocked(account)", "ReqlockLeaseLost(account)",
		"ReqlockHeldLong(account)", "ReqlockOutcomeUnknown(account)", "ReqlockRecordRestored(account)",
		"ReqlockOutcomesOpen()",
	}
	var missing []string
	t.Cleanup(func() {
		if len(missing) > 0 {
			t.Logf("these alerts do not fire: %v", missing)
		}
	})
	suite.Eventually(t, "the alerts fire", func() bool {
		instruments.Observe(core.Event{Kind: core.Refused, Name: "account", Err: core.ErrUnavailable})
		instruments.Observe(core.Event{Kind: core.Unlocked, Name: "account", Err: core.ErrUnavailable})
		firing, err := p.firing()
		missing = missing[:0]
		for _, alert := range want {
			if !strings.Contains(firing, alert) {
				missing = append(missing, alert)
			}
		}
		return err == nil && len(missing) == 0
	})
	for _, e := range append(expressionsOfAlerts(t), expressionsOfDashboard(t)...) {
		checkExpression(t, p, e)
	}
	checkFirstEvents(t, p)
	checkDocs(t, p)
}

// onceEach returns events that use each instrument with each of its attributes.
func onceEach() []core.Event {
	events := []core.Event{
		{Kind: core.Waiting},
		{Kind: core.Acquired, Grant: core.GrantPassed, Queued: true, Waited: time.Millisecond},
		{Kind: core.Refused, Err: core.ErrBusy},
		{Kind: core.Renewed, Err: core.ErrUnavailable},
		{Kind: core.HeldLong, Held: time.Second},
		{Kind: core.Lost, Err: core.ErrLost},
		{Kind: core.Lost, Err: core.ErrMaxHold},
		{Kind: core.Released, Held: time.Second, Err: core.ErrLost},
		{Kind: core.Acquired, Grant: core.GrantFree, Idempotent: true},
		{Kind: core.Committed, Ending: core.EndCommit, Idempotent: true},
		{Kind: core.Released, Ending: core.EndAbort, Idempotent: true},
		{Kind: core.Restored, Idempotent: true},
		{Kind: core.OutcomeUnknown, Idempotent: true},
		{Kind: core.Outage, Err: core.ErrUnavailable},
		{Kind: core.Searched, Open: 1, Took: time.Second},
		{Kind: core.OperatorRevoked, Change: &core.Change{By: "ada"}},
	}
	for i := range events {
		events[i].Name = "account"
	}
	return events
}

// newExporter returns a provider whose metrics are in the registry.
func newExporter(t *testing.T) (*metric.MeterProvider, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry))
	if err != nil {
		t.Fatal(err)
	}
	meters := metric.NewMeterProvider(metric.WithReader(exporter))
	t.Cleanup(func() { _ = meters.Shutdown(context.Background()) })
	return meters, registry
}

// withoutDelay returns a copy of the alerts that fire at once.
func withoutDelay(t *testing.T) (path string) {
	t.Helper()
	rules := regexp.MustCompile(`for: \w+`).ReplaceAll(read(t, "alerts.yaml"), []byte("for: 0s"))
	path = filepath.Join(t.TempDir(), "alerts.yaml")
	if err := os.WriteFile(path, rules, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// read returns a file of the folder of the alerts.
func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(grafana, file))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// An expression is one of PromQL, and the labels that a text with its result has.
type expression struct {
	query string
	shown []string
}

var (
	shownInAlert  = regexp.MustCompile(`\$labels\.(\w+)`)
	shownInLegend = regexp.MustCompile(`{{(\w+)}}`)
)

// show adds the labels that a pattern finds in a text.
func (e *expression) show(pattern *regexp.Regexp, text string) {
	for _, found := range pattern.FindAllStringSubmatch(text, -1) {
		e.shown = append(e.shown, found[1])
	}
}

// expressionsOfAlerts returns the expressions of the alerts, each of which is one line, with the
// labels of the annotations below it.
func expressionsOfAlerts(t *testing.T) (expressions []expression) {
	t.Helper()
	for line := range strings.Lines(string(read(t, "alerts.yaml"))) {
		if query, ok := strings.CutPrefix(strings.TrimSpace(line), "expr: "); ok {
			expressions = append(expressions, expression{query: query})
		} else if n := len(expressions); n > 0 {
			expressions[n-1].show(shownInAlert, line)
		}
	}
	if len(expressions) < 8 {
		t.Fatalf("found %d alerts", len(expressions))
	}
	return expressions
}

// A dashboard is the part of the file of Grafana that the tests read.
type dashboard struct {
	Templating struct {
		List []struct {
			Name, Type string
			Query      any // an object with the query
		}
	}
	Panels []struct {
		Type, Title string
		Targets     []struct{ Expr, LegendFormat string }
	}
}

// readDashboard reads the dashboard.
func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	if err := json.Unmarshal(read(t, "dashboard.json"), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// labelValues is the query of a variable of the dashboard: a selector and a label.
var labelValues = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)

// expressionsOfDashboard returns the expressions of the panels, with the labels of their legends,
// and those of the variables. The variables have the value for all jobs and all names.
func expressionsOfDashboard(t *testing.T) (expressions []expression) {
	t.Helper()
	d := readDashboard(t)
	values := strings.NewReplacer("$__rate_interval", "5m", "$job", ".*", "$name", ".*")
	for _, variable := range d.Templating.List {
		if variable.Type != "query" {
			continue
		}
		query, _ := variable.Query.(map[string]any)["query"].(string)
		of := labelValues.FindStringSubmatch(query)
		if of == nil {
			t.Fatalf("the variable %s has the query %q", variable.Name, query)
		}
		expressions = append(expressions, expression{query: "count by (" + of[2] + ") (" + values.Replace(of[1]) + ")"})
	}
	for _, panel := range d.Panels {
		if len(panel.Targets) == 0 && panel.Type != "row" {
			t.Errorf("the panel %q has no expression", panel.Title)
		}
		for _, target := range panel.Targets {
			e := expression{query: values.Replace(target.Expr)}
			e.show(shownInLegend, target.LegendFormat)
			expressions = append(expressions, e)
		}
	}
	if len(expressions) < 18 {
		t.Fatalf("found %d expressions in the dashboard", len(expressions))
	}
	return expressions
}

var (
	grouping = regexp.MustCompile(`by \(([^)]*)\)`)
	selector = regexp.MustCompile(`reqlock_\w+(?:\{[^}]*\})?`)
)

// checkExpression fails unless Prometheus accepts an expression, each of its selectors has found
// series in the last hour, these have the labels by which it groups, and it groups by those that
// are shown.
func checkExpression(t *testing.T, p *prometheusServer, e expression) {
	t.Helper()
	if _, err := p.query(e.query); err != nil {
		t.Errorf("%s: %v", e.query, err)
	}
	labels := map[string]bool{}
	for _, selected := range selector.FindAllString(grouping.ReplaceAllString(e.query, ""), -1) {
		found, err := p.query("count_over_time(" + selected + "[1h])")
		if err != nil || len(found) == 0 {
			t.Errorf("%s: %s has no series: %v", e.query, selected, err)
		}
		for _, series := range found {
			for label := range series {
				labels[label] = true
			}
		}
	}
	groups := map[string]bool{}
	for _, group := range grouping.FindAllStringSubmatch(e.query, -1) {
		for label := range strings.SplitSeq(group[1], ",") {
			label = strings.TrimSpace(label)
			if groups[label] = true; !labels[label] {
				t.Errorf("%s: no series has the label %s", e.query, label)
			}
		}
	}
	for _, label := range e.shown {
		if !groups[label] {
			t.Errorf("%s: its text shows the label %s, which the result does not have", e.query, label)
		}
	}
}

// checkFirstEvents fails unless each panel that counts events shows them. Some of these have happened
// once in the run: a counter begins with its first event, and increase does not count that one. After a
// scrape that took too long, the series end until the next one.
func checkFirstEvents(t *testing.T, p *prometheusServer) {
	t.Helper()
	counting := 0
	for _, e := range expressionsOfDashboard(t) {
		if !strings.Contains(e.query, "increase(") {
			continue
		}
		counting++
		suite.Eventually(t, e.query+" shows an event", suite.Every(200*time.Millisecond, func() bool {
			found, err := p.query("(" + e.query + ") > 0")
			if err != nil {
				t.Log(err)
			}
			return err == nil && len(found) > 0
		}))
	}
	if counting != 4 {
		t.Errorf("%d panels count events", counting)
	}
}

// checkDocs fails unless each metric in the second column of the table in docs/observability.md exists.
func checkDocs(t *testing.T, p *prometheusServer) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs", "observability.md"))
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile("\\| `(reqlock_\\w+)` \\|").FindAllStringSubmatch(string(page), -1)
	if len(names) != 19 {
		t.Errorf("docs/observability.md has %d metrics of Prometheus", len(names))
	}
	for _, name := range names {
		found, err := p.query(`count_over_time({__name__=~"` + name[1] + `(_count)?"}[1h])`)
		if err != nil || len(found) == 0 {
			t.Errorf("docs/observability.md: there is no metric %s: %v", name[1], err)
		}
	}
}
