// Command bench runs reqlock beside other locks, on a redis-server of its own,
// and prints what they have done. See the README beside it.
//
//	cd bench && go run .
//	cd bench && go run . -quick
package main
