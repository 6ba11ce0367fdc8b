// Package lab is what all suites share: the server, how long and how often to
// run, and the order in which runs take turns.
package lab
