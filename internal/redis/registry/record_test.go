package registry

import (
	"fmt"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/reqlock/reqlock/internal/testkit/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

// begun is a time with no more than milliseconds.
var begun = time.UnixMilli(1_790_000_000_123).UTC()

// sample returns a record with all fields.
func sample() Process {
	return Process{
		Format: Format, Service: "payments", Version: "v1.2.3", Host: "pod-1", PID: 42,
		Started: begun, Beat: begun.Add(time.Minute), Held: 3, Waiting: 7,
		Holds: []Hold{
			{Digest: "0123456789ab", Lease: "a5d9a9791f891beecb55a9a12cf8fcfb4515764a", Name: "account", Since: begun.Add(30 * time.Second), Caller: "/app/transfer.go:42 (main.transfer)", Idempotent: true},
			{Digest: "ba9876543210", Since: begun.Add(40 * time.Second), Shared: true},
		},
		Waits: []Wait{{Digest: "0123456789ab", Name: "account", Since: begun.Add(50 * time.Second), Caller: "/app/transfer.go:42 (main.transfer)", Requests: 7}},
		Age:   2 * time.Second,
	}
}

// fieldsOf returns the fields of a record, as Redis returns them.
func fieldsOf(p Process) map[string]string {
	fields := map[string]string{}
	args := Encode(&p, TTL)
	for i := 0; i < len(args); i += 2 {
		value := args[i+1]
		if text, isText := value.([]byte); isText {
			value = string(text)
		}
		fields[fmt.Sprint(args[i])] = fmt.Sprint(value)
	}
	return fields
}

// A reader of this version understands what it knows of any record: of one that is damaged, and of one
// of a later version.
func TestDecodeKeepsWhatItKnows(t *testing.T) {
	later := func(p *Process) { p.Format = 7 }
	for name, test := range map[string]struct {
		field, value string
		change       func(*Process)
	}{
		"same version":  {"", "", func(*Process) {}},
		"unknown field": {"region", "eu", func(*Process) {}},
		"later format":  {fieldFormat, "7", later},
		"later fields": {fieldHolds, `[{"key":"0123456789ab","since":"2026-11-27T12:00:00Z","region":"eu"}]`, func(p *Process) {
			p.Holds = []Hold{{Digest: "0123456789ab", Since: time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)}}
		}},
		"damaged holds":       {fieldHolds, `[{"key"`, func(p *Process) { p.Holds = nil }},
		"holds of a type":     {fieldHolds, `[{"key":1}]`, func(p *Process) { p.Holds = nil }},
		"damaged waits":       {fieldWaits, `{}`, func(p *Process) { p.Waits = nil }},
		"earlier version":     {fieldWaits, "", func(p *Process) { p.Waits = nil }},
		"many holds":          {fieldHolds, "[" + strings.Repeat("{},", 1000) + "{}]", func(p *Process) { p.Holds = make([]Hold, MaxEntries) }},
		"damaged number":      {fieldHeld, "many", func(p *Process) { p.Held = 0 }},
		"negative number":     {fieldWaiting, "-1", func(p *Process) { p.Waiting = 0 }},
		"damaged time":        {fieldStarted, "yesterday", func(p *Process) { p.Started = time.Time{} }},
		"time of a later TTL": {fieldTTL, "3630000", func(p *Process) { p.Age = 32 * time.Second }},
		"TTL of no duration":  {fieldTTL, "9223372036855000", func(p *Process) { p.Age = -1 }},
		"no TTL":              {fieldTTL, "", func(p *Process) { p.Age = -1 }},
	} {
		fields, want := fieldsOf(sample()), sample()
		fields[test.field] = test.value
		test.change(&want)
		if got, err := Decode(fields, TTL-2*time.Second); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v\nwant %+v", name, got, err, want)
		}
	}
	for _, format := range []string{"", "0", "x"} {
		if p, err := Decode(map[string]string{fieldFormat: format, fieldService: "theirs"}, TTL); err == nil {
			t.Errorf("the format %q: %+v", format, p)
		}
	}
	p := sample()
	if got := p.LastedFor(p.Holds[0].Since); got != 32*time.Second {
		t.Errorf("held for %v", got)
	}
	if p, _ = Decode(fieldsOf(p), -1); p.Age != -1 || p.LastedFor(p.Holds[0].Since) != 30*time.Second {
		t.Errorf("a record that never expires: %v old, held for %v", p.Age, p.LastedFor(p.Holds[0].Since))
	}
}

// No text of another program makes a time that overflows.
func TestLastedForStaysInRange(t *testing.T) {
	p := sample()
	if got := p.LastedFor(time.Unix(0, 0).AddDate(-1000, 0, 0)); got != math.MaxInt64 {
		t.Errorf("lasted for %v", got)
	}
	if got := p.LastedFor(time.Time{}); got != 0 {
		t.Errorf("lasted for %v since a time that is not known", got)
	}
}

// A record with many entries, as another program may write it, costs no more memory than its text.
func TestDecodeOfManyEntriesTakesLittleMemory(t *testing.T) {
	text := "[" + strings.Repeat("{},", 1_000_000) + "{}]"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	entries[Hold](text)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("it takes %d bytes", took)
	}
}

func FuzzDecodeNeverPanics(f *testing.F) {
	f.Add("1", "30000", `[{"since":"2026-11-27T12:00:00Z"}]`, int64(1))
	f.Add("2", "-1", `[null]`, int64(-1))
	f.Fuzz(func(t *testing.T, format, ttl, holds string, left int64) {
		p, err := Decode(map[string]string{fieldFormat: format, fieldTTL: ttl, fieldHolds: holds}, time.Duration(left))
		if err == nil && (p.Format < 1 || p.Age < -1) {
			t.Errorf("%+v", p)
		}
	})
}
