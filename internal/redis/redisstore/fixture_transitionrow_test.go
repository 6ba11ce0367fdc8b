package redisstore

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// A transitionRow is a transitionTest as text. A state has up to four parts, such as
//
//	A1 ttl | B1 C1 @20s | R A1 3 @1m
//	shared ttl #7 | B1 | | A1*=ttl C1/2=claim
//
// They are the lock, the queue, the record and the shared leases. The names of tokens are those of sharedState.
// Behind the lock is its TTL, and that of a marker may have a number. Behind an @ are the TTLs of the queue and the record, if they
// are not those of storetest. The record has its state, its token, the number of an attempt
// that runs, and other fields: see recordOf.
//
// The parts of an outcome have commas between them: see outcomeOfText.
type transitionRow struct {
	name          string
	do            transition
	listening     string // the names of the processes that subscribe
	before        string
	first, second string // second is "" if it is the same as first
	after         string // "=" is the same as before
	hints         string // the tokens
}

// testsOf returns the rows as tests.
func testsOf(rows []transitionRow) []transitionTest {
	tests := make([]transitionTest, len(rows))
	for i, row := range rows {
		test := transitionTest{name: row.name, do: row.do, before: stateOf(row.before), first: outcomeOfText(row.first)}
		test.second = test.first
		if row.second != "" {
			test.second = outcomeOfText(row.second)
		}
		test.after = test.before
		if row.after != "=" {
			test.after = stateOf(row.after)
		}
		for name := range strings.FieldsSeq(row.listening) {
			test.listening = append(test.listening, processOf(name))
		}
		for name := range strings.FieldsSeq(row.hints) {
			test.hints = append(test.hints, tokenOf(name)+" p:k")
		}
		tests[i] = test
	}
	return tests
}

// stateOf returns the state that a text describes.
func stateOf(text string) (s storetest.State) {
	parts := strings.Split(text+"|||", "|")
	if lock := strings.Fields(parts[0]); len(lock) > 0 {
		s.TTL = timeOf(lock[1])
		switch {
		case lock[0] != "shared":
			s.Value = tokenOf(lock[0])
		case len(lock) > 2:
			s.Value = "shared " + lock[2][1:] + " - 0"
		default:
			s.Value = storetest.Marker
		}
	}
	for _, field := range strings.Fields(parts[1]) {
		if ttl, isTTL := strings.CutPrefix(field, "@"); isTTL {
			s.QueueTTL = timeOf(ttl)
		} else {
			s.Queue = append(s.Queue, tokenOf(field))
		}
	}
	if record := strings.Fields(parts[2]); len(record) > 0 {
		s.Record, s.RecordTTL = recordOf(record)
	}
	for lease := range strings.FieldsSeq(parts[3]) {
		if s.Shared == nil {
			s.Shared = make(leases)
		}
		name, left, _ := strings.Cut(lease, "=")
		s.Shared[tokenOf(name)] = timeOf(left)
	}
	return s
}

// timeOf returns the time of a text. "forever" is that of a key without a TTL.
func timeOf(text string) time.Duration {
	switch text {
	case "ttl":
		return storetest.TTL
	case "claim":
		return storetest.Claim
	case "abort":
		return abortTTL
	case "forever":
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return d
}

// recordOf returns the record of these fields, and its TTL. Fields with a "=" are the
// fingerprint f, the answer p, the attempts x that an operator has forgotten, u=1 if the unknown
// outcome was reported, and the reference r.
func recordOf(fields []string) (hash, time.Duration) {
	record, ttl := hash{"s": fields[0], "t": attemptToken(fields[1]), "f": "print"}, time.Duration(0)
	if fields[0] == "D" {
		record["p"] = storetest.Record
	}
	for _, field := range fields[2:] {
		name, value, _ := strings.Cut(field, "=")
		switch {
		case name[0] == '@':
			ttl = timeOf(name[1:])
		case name == "x":
			record = forgotten(strings.Join(tokensOf(strings.Split(value, ",")), " "), record)
		case strings.Contains(field, "="):
			record[name] = value
		default:
			record["n"] = name
		}
	}
	return record, ttl
}

// attemptToken returns the token of a record. It may have prefixes.
func attemptToken(name string) string {
	if attempt, isResolved := strings.CutPrefix(name, "resolved:"); isResolved {
		return "resolved:" + nameOf(attemptToken(attempt))
	}
	if attempt, wasAborted := strings.CutPrefix(name, "aborted:"); wasAborted {
		return "aborted:" + tokenOf(attempt)
	}
	return tokenOf(name)
}

func tokensOf(names []string) []string {
	tokens := make([]string, len(names))
	for i, name := range names {
		tokens[i] = tokenOf(name)
	}
	return tokens
}

// outcomeOfText returns the outcome that a text describes. "nothing" is that of a transition
// that finds neither its token nor a record.
func outcomeOfText(text string) (o outcome) {
	statuses := map[string]store.ReleaseStatus{"freed": store.Freed, "handed": store.Handed, "kept": store.Kept, "unsure": store.Unsure}
	verdicts := map[string]store.Verdict{"done": store.Done, "sealed": store.Unreplayable, "mismatch": store.Mismatch, "interrupted": store.Died}
	records := map[string]store.RecordStatus{"stored": store.WasStored, "restored": store.Restored}
	resolutions := map[string]store.ResolveStatus{"resolved": store.Resolved, "changed": store.Changed, "still running": store.StillRunning}
	for _, part := range strings.Split(text, ", ") {
		word, rest, _ := strings.Cut(part, " ")
		switch word {
		case "nothing":
		case "granted":
			o.granted = true
		case "waiting":
			o.waiting, _ = strconv.Atoi(rest)
		case "revoked":
			o.revoked, _ = strconv.Atoi(rest)
		case "number":
			o.number, _ = strconv.Atoi(rest)
		case "by":
			o.holder = tokenOf(rest)
		case "left":
			o.remaining = timeOf(rest)
			if rest == "forever" {
				o.remaining = -1
			}
		case "foreign":
			o.foreign = true
		case "running":
			o.running = true
		case "shared":
			o.shared = true
		case "answer":
			o.record = storetest.Record
		case "answered":
			o.read = store.Outcome{State: store.WasAnswered, Attempt: nameOf(attemptToken(rest)), Fingerprint: "print"}
		case "first":
			o.first = rest
		case "unreported":
			o.unreported = nameOf(attemptToken(rest))
		default:
			o.status, o.verdict, o.stored, o.resolved = max(o.status, statuses[part]), max(o.verdict, verdicts[part]), max(o.stored, records[part]), max(o.resolved, resolutions[part])
			if statuses[part]+store.ReleaseStatus(verdicts[part])+store.ReleaseStatus(records[part])+store.ReleaseStatus(resolutions[part]) == 0 {
				panic(fmt.Sprintf("unknown outcome %q", part))
			}
		}
	}
	return o
}
