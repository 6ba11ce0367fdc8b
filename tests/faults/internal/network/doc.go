// Package network is what lies between the clients of a run and its servers: for
// each client process two proxies in front of each server, of which one knows
// bytes and time (latency, bandwidth, half-open connections), and one knows
// commands (redistest.Proxy: the reply to this command is lost).
//
//	process -> line (bytes) -> redistest.Proxy (commands) -> server
//
// What happens to bytes is done by the toxics of toxiproxy. The connections that
// they are in are our own: those of toxiproxy leave goroutines behind when one
// side goes away while bytes are on the way to it, and stand still for good if
// toxics change at that moment, which is what a campaign consists of.
package network
