// Package httpreply answers requests that are refused, in the same way on every HTTP
// framework: with the outcome of an error as a problem document (RFC 9457).
package httpreply
