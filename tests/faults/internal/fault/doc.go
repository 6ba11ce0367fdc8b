// Package fault injects failures: of servers, of the network between them and the clients,
// and of the clients.
package fault
