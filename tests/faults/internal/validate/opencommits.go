package validate

import (
	"slices"
	"time"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// commitTimeout is after how long a commit becomes an open commit at the earliest, if it was not
// refused before. The caller may have left earlier.
const commitTimeout = 2 * time.Second

// isOpenCommit reports whether an operation is a commit or a seal that has failed, and goes on.
func isOpenCommit(op *history.Op) bool {
	return (op.Kind == history.Commit || op.Kind == history.Seal) && op.Outcome == history.Unavailable
}

// isOfOpenCommit reports whether a Begin may have got the answer of an open commit of its own
// process. The server need not have the answer yet, so the call says nothing about the record.
func (s *summary) isOfOpenCommit(key lock, begin *history.Op) bool {
	return slices.ContainsFunc(s.calls[key], func(commit *history.Op) bool {
		return commit.Record == begin.Record && mayBeOpen(commit, begin)
	})
}

// isBesideOpenCommit reports whether a Begin may have been refused because its process has an open
// commit of the same key.
func (s *summary) isBesideOpenCommit(begin *history.Op) bool {
	return begin.Kind == history.Begin && slices.ContainsFunc(s.calls[lockOf(begin)], func(commit *history.Op) bool {
		return mayBeOpen(commit, begin)
	})
}

// mayBeOpen reports whether a commit may be an open commit of the process of a Begin.
func mayBeOpen(commit, begin *history.Op) bool {
	return commit.Process == begin.Process && commit.Call <= begin.Return &&
		(isOpenCommit(commit) || commit.Outcome == history.Deadline && begin.Return-commit.Call >= commitTimeout.Nanoseconds())
}

// besideOpenCommits finds attempts that began in a process with an open commit of the same
// request, whatever data the server has lost. Another attempt that begins meanwhile ends the open
// commit: one of another process, or one for which this process had asked before the commit.
func besideOpenCommits(s *summary, key lock) (found []Violation) {
	for _, commit := range s.calls[key] {
		if !isOpenCommit(commit) {
			continue
		}
		ends := func(begin *history.Op) bool {
			return begin.Kind == history.Begin && begin.Lease != commit.Lease && (begin.Outcome == history.Granted || isIndeterminate(begin)) &&
				(begin.Return == 0 || begin.Return >= commit.Call) && (begin.Process != commit.Process || begin.Call <= commit.Return)
		}
		for _, begin := range s.calls[key] {
			if begin.Kind != history.Begin || begin.Process != commit.Process || begin.Outcome != history.Granted || begin.Call <= commit.Return {
				continue
			}
			if !slices.ContainsFunc(s.calls[key], func(other *history.Op) bool { return ends(other) && other.Call <= begin.Return }) {
				found = append(found, Violation{Check: checkAttempts, Text: callName(begin) + ", began beside an open commit of its process: " + callName(commit)})
			}
		}
	}
	return found
}
