// Package traffic is the workload of a run: client processes that take locks, work under
// them and begin attempts. A fault can kill and pause these processes. The program starts
// itself again as a client process: see Main and package client.
//
// A process reports each call before it makes it and after it returned. So a killed process
// loses only the results of calls that had not returned.
package traffic
