// Package wire counts the commands that a client of Redis sends. The server's own
// statistics include the commands of scripts.
package wire
