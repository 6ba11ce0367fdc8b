// Package measure computes the figures of the comparison: waits, medians, fairness, and the
// usage of a process.
package measure
