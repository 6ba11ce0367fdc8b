// Package runner has what all suites share: the server, the duration and the number of
// runs, and the order of the runs.
package runner
