// Package console serves pages that show the locks of a service to its operators: who holds a lock and
// who waits for it, unknown outcomes, and the processes. If it is allowed to, it also ends leases and
// resolves outcomes.
//
//	i, err := inspect.New(rdb)
//	pages, err := console.New(i)
//	mux.Handle("/locks/", auth(pages)) // auth is your own middleware
//
// # Access
//
// A Console asks nobody for a password: the middleware in front of it does. Without one, anybody who
// reaches the address sees the pages. Actions are off. WithActions turns them on, and then WithActor says
// who acts. Each action wants a reason, and is an event for inspect.WithObserver: a line of slog.Default at
// INFO if that is not set.
//
// Keys appear as digests, as in the log, unless WithRawKeys is set. No page shows a token or an answer.
//
// # Addresses
//
// A Console ignores the path of a request: the query says which page it is, and each address in a page is
// relative. So it works under any path, behind http.StripPrefix, and behind a proxy that changes the path.
//
// # Cost
//
// A Console has no goroutine, and sends no command while nobody looks at it. A list looks through all
// keys of the server: see package inspect. All viewers share it, and it is made at most each two seconds,
// and at most a quarter of the time. With 100,000 locks and 500,000 other keys in Redis, the lists took
// 2.5 s and 6 MB at the default limit of 10,000 locks, and a page of them 2 ms.
package console
