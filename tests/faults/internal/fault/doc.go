// Package fault is what can go wrong, made to happen: to servers, to the network
// between them and the clients, and to the clients themselves.
package fault
