// Command payments is a small payment service on net/http, Gin, Echo and gRPC,
// whose endpoints run under locks, and the clients that put it to the test.
//
//	go run ./examples/payments
//	go run ./examples/payments -serve
//	REDIS_URL=redis://localhost:6379/0 go run ./examples/payments
//
// Without REDIS_URL it starts a Redis of its own inside the process. The
// clients come over real connections to all four services at once, and a table
// says what they sent, what was to be expected and what happened. The exit code
// is 1 if something was not as expected, and 2 if the program could not begin.
// With -serve the services stay up for clients of yours. A Redis of yours keeps
// the answers of payments, four for each run, for ten minutes.
//
// The code to copy is in service_nethttp.go, service_gin.go, service_echo.go
// and service_grpc.go: the routes, and the locks under which they run. The bank
// behind them is in bank.go. The rest is the test: scene.go sees what happens
// inside the handlers, parts.go and its siblings are the clients.
package main
