// Package report prints runs: tables, figures with their targets, charts, and JSON.
package report
