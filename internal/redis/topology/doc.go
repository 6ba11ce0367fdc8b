// Package topology tells kinds of Redis clients apart: clients of one server or of
// Sentinel, clients of a cluster, and wrappers that embed one of them. It refuses clients
// on which no lock can be kept.
package topology
