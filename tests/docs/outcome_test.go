package docs_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

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
	ended := func(cause error) error {
		ctx, cancel := context.WithCancel(t.Context())
		if errors.Is(cause, context.DeadlineExceeded) {
			ctx, cancel = context.WithTimeout(t.Context(), 0)
		}
		cancel()
		_, err := locks.Lock(ctx, "key")
		return err
	}
	_, keyError := core.Func(func(int) (string, error) { return "", errors.New("failed") }).Read(0)
	return map[string]error{
		"ErrBodyTooLarge":          core.ErrBodyTooLarge,
		"ErrBusy":                  core.ErrBusy,
		"ErrChanged":               core.ErrChanged,
		"ErrClosed":                &core.Error{Kind: core.ErrClosed},
		"ErrHiddenLease":           core.ErrHiddenLease,
		"ErrInterrupted":           core.ErrInterrupted,
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
		"context.Canceled":         ended(context.Canceled),
		"context.DeadlineExceeded": ended(context.DeadlineExceeded),
		"its own error":            keyError,
	}
}

// An outcomeTable is the part of a page with a table of outcomes.
type outcomeTable struct {
	columns map[string]int // by the beginning of their heads
	rows    [][]string
}

// outcomeTables returns the tables of a page with the columns error, HTTP and code.
func outcomeTables(page string) []outcomeTable {
	var (
		found  []outcomeTable
		inside bool
	)
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			inside = false
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.ReplaceAll(strings.TrimSpace(cells[i]), "core.", "")
		}
		if !inside {
			inside = true
			found = append(found, outcomeTable{columns: heads(cells)})
			continue
		}
		if last := &found[len(found)-1]; !strings.HasPrefix(cells[0], "---") && len(cells) >= len(last.columns) {
			last.rows = append(last.rows, cells)
		}
	}
	return slices.DeleteFunc(found, func(table outcomeTable) bool {
		return table.columns["error"]*table.columns["http"]*table.columns["code"] == 0 // the first column says what happened
	})
}

// heads returns the number of each column by the first part of its head, in lower case.
func heads(cells []string) map[string]int {
	columns := make(map[string]int)
	for i, cell := range cells {
		first, _, _ := strings.Cut(strings.ToLower(cell), " ")
		columns[first] = i
	}
	return columns
}

var number = regexp.MustCompile(`\b[1-5]\d\d\b`)

// grpcCode returns the name of a code as the gRPC specification writes it.
func grpcCode(err error) string {
	camel := grpclock.StatusOf(err).Code().String()
	return strings.ToUpper(regexp.MustCompile(`([a-z])([A-Z])`).ReplaceAllString(camel, "${1}_$2"))
}

// checkRow returns what is wrong in a row about an error.
func (table outcomeTable) checkRow(row []string, err error) (wrong []string) {
	outcome, _ := core.OutcomeOf(err)
	status := row[table.columns["http"]]
	if got := number.FindString(status); got != strconv.Itoa(outcome.HTTP) {
		wrong = append(wrong, "the HTTP status is "+strconv.Itoa(outcome.HTTP))
	}
	if strings.Contains(status, "Retry-After") != (outcome.RetryAfter > 0) {
		wrong = append(wrong, "Retry-After")
	}
	code := strings.Trim(row[table.columns["code"]], "`")
	if code != outcome.Code && (code != "" || outcome.Code != "canceled") { // HTTP sends no body to a client that has left
		wrong = append(wrong, "the code is "+outcome.Code)
	}
	if column, ok := table.columns["grpc"]; ok && strings.Trim(row[column], "`") != grpcCode(err) {
		wrong = append(wrong, "the gRPC code is "+grpcCode(err))
	}
	return wrong
}

// checkOutcomes returns what is wrong in the tables of a page, and which errors they have.
func checkOutcomes(page string, refusals map[string]error) (wrong []string, seen map[string]bool) {
	seen = make(map[string]bool)
	for _, table := range outcomeTables(page) {
		for _, row := range table.rows {
			name := strings.Trim(row[table.columns["error"]], "`")
			err, ok := refusals[name]
			if !ok {
				wrong = append(wrong, "unknown error: "+name)
				continue
			}
			seen[name] = true
			for _, finding := range table.checkRow(row, err) {
				wrong = append(wrong, name+": "+finding)
			}
		}
	}
	return wrong, seen
}

func TestOutcomesAreThoseOfTheCode(t *testing.T) {
	known := refusals(t)
	rows := 0
	for _, name := range []string{"README.md", "docs/errors.md"} {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		wrong, seen := checkOutcomes(string(text), known)
		for _, finding := range wrong {
			t.Errorf("%s: %s", name, finding)
		}
		rows += len(seen)
		for refusal := range known {
			if name == "docs/errors.md" && !seen[refusal] {
				t.Errorf("%s has no row of %s", name, refusal)
			}
		}
	}
	if rows < 10 {
		t.Errorf("found %d rows", rows)
	}
}

func TestWrongOutcomesAreFound(t *testing.T) {
	const page = "| what happened | error (`errors.Is`) | HTTP | code | gRPC |\n|---|---|---|---|---|\n" +
		"| busy | `core.ErrBusy` | 409, Retry-After | `busy` | ABORTED |\n" +
		"| full | `ErrQueueFull` | 503 | `full` | ABORTED |\n" +
		"| ? | `ErrSkip` | 500 | `lost` | INTERNAL |\n" +
		"| own | its own error | its `StatusCode()`, or 500 | `key_error` | INTERNAL |\n\n" +
		"| option | default |\n|---|---|\n| a | b |\n"
	wrong, seen := checkOutcomes(page, refusals(t))
	want := []string{
		"ErrQueueFull: the HTTP status is 429", "ErrQueueFull: Retry-After", "ErrQueueFull: the code is queue_full",
		"ErrQueueFull: the gRPC code is RESOURCE_EXHAUSTED", "unknown error: ErrSkip",
	}
	if !slices.Equal(wrong, want) || len(seen) != 3 {
		t.Errorf("got %q, seen %v", wrong, seen)
	}
}

// A reader searches the page for the text of an error.
func TestTroubleshootingHasTheTextOfEachError(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "troubleshooting.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name, refusal := range refusals(t) {
		outcome, _ := core.OutcomeOf(refusal)
		text, _, _ := strings.Cut(strings.TrimPrefix(refusal.Error(), "reqlock: "), ": ")
		if name == "its own error" {
			text = "key function"
		}
		isRow := regexp.MustCompile("(?m)^\\|[^|]*`" + outcome.Code + "`[^|]*\\|[^|]*`" + regexp.QuoteMeta(text) + "[`:]")
		if !isRow.Match(page) {
			t.Errorf("no row has the code %s and the text %q", outcome.Code, text)
		}
	}
}
