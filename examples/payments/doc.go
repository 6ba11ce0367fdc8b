// Command payments runs a small payment service on net/http, Gin, Echo and gRPC under
// locks, and clients that test the service.
//
//	go run ./examples/payments
//	go run ./examples/payments -serve
//	REDIS_URL=redis://localhost:6379/0 go run ./examples/payments
//
// Without REDIS_URL it starts an embedded Redis. The clients use real connections to
// all four services at once. A table shows for each scenario the requests, the
// expected result and the result. The exit code is 1 if a result was not as expected,
// and 2 if the program could not start. With -serve the services stay up for your own
// clients. Your own Redis keeps the records of payments, twenty-four for each run, for ten
// minutes.
//
// The code to copy is in service_nethttp.go, service_gin.go, service_echo.go and
// service_grpc.go: the routes, and the locks under which they run. bank.go has the
// bank behind them. The rest tests the services: monitor.go counts what happens
// inside the handlers, and scenario.go and the other scenario files send the
// requests.
package main
