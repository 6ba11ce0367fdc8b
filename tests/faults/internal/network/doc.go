// Package network is the network between the clients of a run and its servers. For each
// client process it has two proxies in front of each server. One handles bytes: latency,
// bandwidth, half-open connections. The other handles commands, such as a lost reply to one
// command: it is a redistest.Proxy.
//
//	process -> link (bytes) -> redistest.Proxy (commands) -> server
//
// The toxics of toxiproxy change how bytes pass. The connections are our own: those of
// toxiproxy leak goroutines when one side closes while bytes are under way, and block for
// good if toxics change at that time, as a campaign does all the time.
package network
