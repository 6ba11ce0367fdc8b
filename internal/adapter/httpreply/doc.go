// Package httpreply answers the requests that do not run, the same on every
// HTTP framework: the outcome of an error as a problem document (RFC 9457).
package httpreply
