package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// A scenario is a few requests of several clients. The first request begins its work before
// the others are sent.
type scenario struct {
	heading string
	paths   []string // one for each client
}

func scenarios() []scenario {
	const transfer, withdrawal, payment = "/accounts/ada/transfers", "/accounts/ada/withdrawals", "/payments"
	return []scenario{
		{"One transfer. A lock that is free has no span.", []string{transfer}},
		{"Three transfers from one account. Two of them wait for their turn.", []string{transfer, transfer, transfer}},
		{"A withdrawal during a transfer. Its route does not wait, so it is refused.", []string{transfer, withdrawal}},
		{"One payment that is sent twice. The copy waits for the answer, and gets it.", []string{payment, payment}},
	}
}

// clients are the clients of the service at the URL.
type clients struct {
	url       string
	payment   string // its Idempotency-Key
	telemetry *telemetry
	bank      *bank
}

// run sends the requests of a scenario. It returns when they are answered and their traces
// are printed.
func (c clients) run(ctx context.Context, s scenario) error {
	var group sync.WaitGroup
	answers := make(chan error, len(s.paths))
	for i, path := range s.paths {
		group.Go(func() { answers <- c.send(ctx, fmt.Sprintf("client %d", i+1), path) })
		if i > 0 {
			continue
		}
		select {
		case <-c.bank.settling:
		case err := <-answers:
			return errors.Join(errors.New("the first request was answered without its work"), err)
		}
	}
	group.Wait()
	select {
	case <-c.bank.settling: // of a later request
	default:
	}
	close(answers)
	for err := range answers {
		if err != nil {
			return err
		}
	}
	return c.telemetry.tracers.ForceFlush(ctx)
}

// send sends a request, in a span that is the first one of a trace.
func (c clients) send(ctx context.Context, name, path string) error {
	ctx, span := c.telemetry.tracer().Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient))
	defer span.End()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+path, http.NoBody)
	if err != nil {
		return err
	}
	r.Header.Set("Idempotency-Key", c.payment)
	c.telemetry.propagator.Inject(ctx, propagation.HeaderCarrier(r.Header))
	answer, err := newClient().Do(r)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// newClient returns a client whose connections end with its requests.
func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
}

// printMetrics prints the metrics of reqlock at a URL.
func printMetrics(ctx context.Context, out io.Writer, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	answer, err := newClient().Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "reqlock_") && !strings.Contains(line, "_bucket{") {
			fmt.Fprintln(out, line)
		}
	}
	return lines.Err()
}
