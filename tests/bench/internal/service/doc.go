// Package service has what the suites share that call a service over loopback:
// how it is served, how its clients call it at the same time, and what its
// requests have cost.
package service
