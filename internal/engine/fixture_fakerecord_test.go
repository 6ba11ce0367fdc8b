package engine

import (
	"bytes"
	"cmp"
	"context"
	"time"

	"github.com/reqlock/reqlock/internal/store"
	"github.com/reqlock/reqlock/internal/testkit/storetest"
)

// A fakeRecord is the record of a key on a fake server.
type fakeRecord struct {
	state       rune // R running, D done, U sealed, A aborted
	token       string
	fingerprint []byte
	answer      []byte
	number      int
	reported    string // the token of the attempt whose unknown outcome was reported
	reference   string // of the attempt
}

// begin applies the record to an attempt, as the store does. It reports false if the
// record does not decide.
func (s *fakeServer) begin(r storetest.AnyRequest, value string) (answer store.Answer, decided bool) {
	record := s.records[r.Key]
	switch {
	case record.state == 0, record.state == 'A':
	case !bytes.Equal(record.fingerprint, r.Attempt.Fingerprint):
		answer.Verdict = store.Mismatch
	case record.state == 'D':
		answer.Verdict, answer.Record = store.Done, record.answer
	case record.state == 'U':
		answer.Verdict = store.Unreplayable
	case record.token != r.Token && record.token != value && !r.Attempt.Rerun:
		answer.Verdict = store.Died
		if record.reported != record.token {
			answer.Unreported = record.token
		}
	}
	if answer.Verdict == store.Undecided {
		return answer, false
	}
	answer.First = record.reference
	r.Rejoin = ""
	s.give(r, value)
	return answer, true
}

// run stores the attempt in the record, and returns its number.
func (s *fakeServer) run(r storetest.AnyRequest) int {
	record := s.records[r.Key]
	switch {
	case record.state == 'R' && record.token == r.Token:
		return record.number
	case record.state != 'R':
		record.number = 0
	}
	s.records[r.Key] = fakeRecord{
		state: 'R', token: r.Token, fingerprint: r.Attempt.Fingerprint, number: record.number + 1, reference: r.Attempt.Reference,
	}
	return record.number + 1
}

// finish stores the ending of an attempt in the record.
func (s *fakeServer) finish(r storetest.AnyRequest, value string) store.RecordStatus {
	record := s.records[r.Key]
	gone := record.state == 0 || record.state == 'A' && record.token != r.Token
	switch {
	case record.state == 'R' && record.token == r.Token:
	case gone && (r.Ending == store.EndAbort || value == "" || value == r.Token):
	case record.token == r.Token && (record.state == 'A') == (r.Ending == store.EndAbort):
		return store.WasStored
	default:
		return store.NotStored
	}
	if r.Ending == store.EndAbort && record.state == 'R' && record.number > 1 { // earlier attempts died
		record.token, record.number, record.reference = "aborted:"+r.Token, record.number-1, ""
		s.records[r.Key] = record
		return store.WasStored
	}
	state := map[store.Ending]rune{store.EndAbort: 'A', store.EndCommit: 'D', store.EndDone: 'U'}[r.Ending]
	s.records[r.Key] = fakeRecord{
		state: state, token: r.Token, fingerprint: r.Attempt.Fingerprint, answer: r.Record, reference: r.Attempt.Reference,
	}
	if gone && r.Ending != store.EndAbort {
		return store.Restored
	}
	return store.WasStored
}

// record returns the record of a key.
func (s *fakeServer) record(key string) fakeRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.records[key]
}

// setRecord sets the record of a key, as another process does.
func (s *fakeServer) setRecord(key string, record fakeRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records[key] = record
}

// Resolve ends an attempt that does not run any more. The fake names an attempt by its token.
func (s *fakeStore) Resolve(r store.ResolveRequest, done func(store.ResolveStatus, error)) {
	go func() {
		var status store.ResolveStatus
		r.Key, r.Seen = cmp.Or(r.Key, r.Lock), cmp.Or(r.Token, r.Seen)
		err := s.transition("resolve", storetest.AnyRequest{Key: r.Key, Bound: r.Bound}, func(value string) {
			record := s.records[r.Key]
			switch {
			case record.state == 0 || record.state == 'A':
				return
			case record.state != 'R' || record.token != r.Seen:
				status = store.Changed
				return
			case record.token == value:
				status = store.StillRunning
				return
			}
			status = store.Resolved
			if r.Resolution == store.NoteReported {
				record.reported = r.Seen
				s.records[r.Key] = record
				return
			}
			if r.Resolution == store.ResolveNotDone { // the record refuses a late commit
				record.state = 'A'
				s.records[r.Key] = record
				return
			}
			record.token, record.number = "resolved:"+r.Seen, 0
			switch r.Resolution {
			case store.ResolveDone:
				record.state = 'U'
			case store.ResolveAnswered:
				record.state, record.answer = 'D', r.Record
			}
			s.records[r.Key] = record
		})
		done(status, err)
	}()
}

// Outcome reads the record.
func (s *fakeStore) Outcome(r store.OutcomeRequest, done func(store.Outcome, error)) {
	go func() {
		var outcome store.Outcome
		r.Key = cmp.Or(r.Key, r.Lock)
		err := s.transition("outcome", storetest.AnyRequest{Key: r.Key, Bound: r.Bound}, func(value string) {
			record := s.records[r.Key]
			outcome = store.Outcome{Attempt: record.token, Number: record.number, First: record.reference}
			switch {
			case record.state == 'R' && record.token == value:
				outcome.State = store.Running
			case record.state == 'R':
				outcome.State = store.Unknown
			case record.state == 'U':
				outcome.State = store.WasDone
			case record.state == 'D':
				outcome.State = store.WasAnswered
			default:
				outcome = store.Outcome{}
			}
		})
		done(outcome, err)
	}()
}

// Search passes the records whose attempt has not ended.
func (s *fakeStore) Search(_ context.Context, bound time.Duration, found func([]store.OpenRecord) error) error {
	var open []store.OpenRecord
	err := s.transition("search", storetest.AnyRequest{Bound: bound}, func(string) {
		for key, record := range s.records {
			if record.state == 'R' {
				open = append(open, store.OpenRecord{Lock: key, Key: key, Idle: time.Minute, Reported: record.reported})
			}
		}
	})
	if err != nil {
		return err
	}
	return found(open)
}

// forget resolves the request of the key "k" by Forget, if the attempt has this token.
func forget(e *Engine, token string) (ResolveStatus, error) {
	return e.Resolve(context.Background(), ResolveRequest{Key: "k", Seen: token, Resolution: ResolveNotDone})
}

// answerOf returns the answer of the attempt with the hold's token.
func answerOf(h *Hold) []byte { return []byte("answer of " + h.Token()) }

// attempt returns a request with a fingerprint.
func attempt(fingerprint string, wait time.Duration) Request {
	r := request(wait)
	r.Attempt = &Attempt{Fingerprint: []byte(fingerprint), Keep: time.Hour}
	return r
}
