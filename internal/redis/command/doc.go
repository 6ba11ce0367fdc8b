// Package command is one command that go-redis sends for this project, its reply, and the
// meaning of its error.
//
// go-redis repeats a command by itself when a reply is lost. A caller would then be refused by
// its own lock: the second SET NX finds the key that the first one has set. So each command
// here forbids go-redis to repeat it. Package pipeline sends it again, at most once.
//
// NewFault classifies an error. It also removes the user's name and the arguments of the
// command from the text: they may be keys and tokens.
//
// WAIT counts the replicas that have what its own connection has written. Replicas is the
// number of replicas that must acknowledge a write, and the time that they have.
package command
