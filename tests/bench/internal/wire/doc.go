// Package wire counts the commands that a client of Redis sends. The server's
// own statistics cannot tell them from the commands that its scripts run.
package wire
