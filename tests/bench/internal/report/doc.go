// Package report turns runs into what people read: tables, the figures beside
// their targets, charts, and JSON.
package report
