package oteltest

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/reqlock/reqlock/internal/testkit/redistest"
	"github.com/reqlock/reqlock/internal/testkit/suite"
)

// A prometheusServer is a Prometheus that scrapes one program several times a second.
type prometheusServer struct {
	address string
	client  *http.Client
}

// prometheusConfig has the address of the program and the file of the alerts.
const prometheusConfig = `
global: {scrape_interval: 200ms, scrape_timeout: 200ms, evaluation_interval: 200ms}
rule_files: [%s]
scrape_configs:
  - job_name: payments
    static_configs: [{targets: [%s]}]
`

// startPrometheus runs Prometheus until the end of the test. Where it is not installed the test is
// skipped, or fails if REQLOCK_REQUIRE_REDIS is set.
func startPrometheus(t *testing.T, target, rules string) *prometheusServer {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		suite.SkipOrFail(t, "%v", err)
	}
	dir := t.TempDir()
	config, log := filepath.Join(dir, "prometheus.yml"), filepath.Join(dir, "log")
	if err := os.WriteFile(config, fmt.Appendf(nil, prometheusConfig, rules, target), 0o600); err != nil {
		t.Fatal(err)
	}
	output, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	port, err := redistest.FreePort(t)
	if err != nil {
		t.Fatal(err)
	}
	p := &prometheusServer{
		address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		client:  &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	}
	ctx, kill := context.WithCancel(context.Background()) // that of the test ends before its cleanups
	command := exec.CommandContext(ctx, program,
		"--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+p.address)
	command.Stdout, command.Stderr = output, output
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		kill()
		_ = command.Wait()
		_ = output.Close()
		if t.Failed() {
			said, _ := os.ReadFile(log)
			t.Logf("prometheus: %s", said)
		}
	})
	suite.Eventually(t, "Prometheus has scraped the program", func() bool {
		found, err := p.query(`up{job="payments"} == 1`)
		return err == nil && len(found) == 1
	})
	return p
}

// get reads the data of an answer of the HTTP API.
func (p *prometheusServer) get(path string, parameters url.Values, data any) error {
	answer, err := p.client.Get("http://" + p.address + "/api/v1/" + path + "?" + parameters.Encode()) //nolint:noctx // it ends with the program
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	var read struct {
		Error string
		Data  json.RawMessage
	}
	if err := json.NewDecoder(answer.Body).Decode(&read); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", answer.Status, read.Error)
	}
	return json.Unmarshal(read.Data, data)
}

// query returns the labels of each series that an expression has now.
func (p *prometheusServer) query(expression string) ([]map[string]string, error) {
	var data struct {
		Result []struct{ Metric map[string]string }
	}
	err := p.get("query", url.Values{"query": {expression}}, &data)
	found := make([]map[string]string, 0, len(data.Result))
	for _, result := range data.Result {
		found = append(found, result.Metric)
	}
	return found, err
}

// firing returns the names and the lock names of the alerts that fire.
func (p *prometheusServer) firing() (string, error) {
	var data struct {
		Alerts []struct {
			State  string
			Labels map[string]string
		}
	}
	err := p.get("alerts", nil, &data)
	var firing strings.Builder
	for _, alert := range data.Alerts {
		if alert.State == "firing" {
			fmt.Fprintf(&firing, "%s(%s) ", alert.Labels["alertname"], alert.Labels["reqlock_lock_name"])
		}
	}
	return firing.String(), err
}
