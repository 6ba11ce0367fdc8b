// Command bench runs reqlock and other locks on its own redis-server, and prints what each
// of them achieved and used. See README.md.
//
//	cd tests/bench && go run .
//	cd tests/bench && go run . -quick
package main
