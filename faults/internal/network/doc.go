// Package network is what lies between the clients of a run and its servers: for
// each client process two proxies in front of each server, of which one knows
// bytes and time (toxiproxy: latency, bandwidth, half-open connections), and one
// knows commands (redistest.Proxy: the reply to this command is lost).
package network
