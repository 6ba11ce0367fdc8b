package docs_test

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/core"
	"github.com/reqlock/reqlock/grpclock"
)

// refusals returns the errors of requests that do not run, by what a table calls them.
func refusals(t *testing.T) map[string]error {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}) // no command is sent
	locks := core.Must(core.New(rdb))
	t.Cleanup(func() { _, _ = locks.Close(context.Background()), rdb.Close() })
	ended := func(timeout time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		cancel()
		_, err := locks.Lock(ctx, "key")
		return err
	}
	_, keyError := core.KeyOf(func(int) (string, error) { return "", errors.New("failed") }).Read(0)
	return map[string]error{
		"ErrBodyTooLarge":          core.ErrBodyTooLarge,
		"ErrBusy":                  core.ErrBusy,
		"ErrChanged":               core.ErrChanged,
		"ErrClosed":                &core.Error{Kind: core.ErrClosed},
		"ErrHiddenLease":           core.ErrHiddenLease,
		"ErrOutcomeUnknown":        core.ErrOutcomeUnknown,
		"ErrLost":                  core.ErrLost,
		"ErrInvalidKey":            core.ErrInvalidKey,
		"ErrMismatch":              core.ErrMismatch,
		"ErrUpgrade":               core.ErrUpgrade,
		"ErrNoKey":                 core.ErrNoKey,
		"ErrNotFound":              core.ErrNotFound,
		"ErrOverloaded":            core.ErrOverloaded,
		"ErrQueueFull":             core.ErrQueueFull,
		"ErrUnavailable":           core.ErrUnavailable,
		"ErrUnreplayable":          core.ErrUnreplayable,
		"ErrWaitTimeout":           core.ErrWaitTimeout,
		"context.Canceled":         ended(time.Minute),
		"context.DeadlineExceeded": ended(0),
		"its own error":            keyError,
	}
}

// grpcCode returns the name of a code as the gRPC specification writes it.
func grpcCode(err error) string {
	camel := grpclock.StatusOf(err).Code().String()
	return strings.ToUpper(regexp.MustCompile(`([a-z])([A-Z])`).ReplaceAllString(camel, "${1}_$2"))
}

// rowEnd returns how the row of an error in docs/errors.md ends: its code, its name, and what clients get.
func rowEnd(name string, err error) string {
	refusal, _ := core.RefusalOf(err)
	status := strconv.Itoa(refusal.HTTP)
	if refusal.RetryAfter > 0 {
		status += ", Retry-After"
	}
	cell := "`" + name + "`"
	switch name {
	case "its own error":
		cell, status = name, "its `StatusCode()`, or "+status
	case "context.Canceled":
		status += ", empty"
	}
	return "| `" + refusal.Code + "` | " + cell + " | " + status + " | " + grpcCode(err) + " |\n"
}

func TestOutcomesAreThoseOfTheCode(t *testing.T) {
	_, table, _ := strings.Cut(read(t, "docs/errors.md"), "| what happened | code | error (`errors.Is`) | HTTP | gRPC |\n|---|---|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	all := refusals(t)
	if rows := strings.Count(table+"\n", "\n"); rows != len(all) {
		t.Errorf("docs/errors.md has %d refusals, want %d", rows, len(all))
	}
	for name, err := range all {
		if end := rowEnd(name, err); !strings.Contains(table+"\n", end) {
			t.Errorf("docs/errors.md has no row of %s that ends with %s", name, end)
		}
	}
}

// clientRow matches a row of the README's table of what clients do: a status, and its codes.
var clientRow = regexp.MustCompile("(?m)^\\| (\\d{3}) \\| (`.*?`) \\|")

func TestStatusOfEachCodeInReadme(t *testing.T) {
	statusOf := make(map[string]string)
	for _, err := range refusals(t) {
		refusal, _ := core.RefusalOf(err)
		statusOf[refusal.Code] = strconv.Itoa(refusal.HTTP)
	}
	rows := clientRow.FindAllStringSubmatch(read(t, "README.md"), -1)
	for _, row := range rows {
		for code := range strings.SplitSeq(row[2], ", ") {
			if want := statusOf[strings.Trim(code, "`")]; row[1] != want {
				t.Errorf("README.md: the status of %s is %q, not %s", code, want, row[1])
			}
		}
	}
	if len(rows) == 0 {
		t.Error("README.md has no table of codes")
	}
}

// A reader searches the page for the text of an error.
func TestTroubleshootingHasTheTextOfEachError(t *testing.T) {
	page := read(t, "docs/troubleshooting.md")
	for name, err := range refusals(t) {
		refusal, _ := core.RefusalOf(err)
		text, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "reqlock: "), ": ")
		if name == "its own error" {
			text = "key function"
		}
		isRow := regexp.MustCompile("(?m)^\\|[^|]*`" + refusal.Code + "`[^|]*\\|[^|]*`" + regexp.QuoteMeta(text) + "[`:]")
		if !isRow.MatchString(page) {
			t.Errorf("no row has the code %s and the text %q", refusal.Code, text)
		}
	}
}
