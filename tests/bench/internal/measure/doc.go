// Package measure has the numbers of the comparison: waits, medians, fairness,
// and what a process has used.
package measure
