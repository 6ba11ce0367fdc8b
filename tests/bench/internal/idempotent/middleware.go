package idempotent

// A Middleware is a part of the comparison, and its settings.
type Middleware struct {
	Name    string
	Module  string
	Setting string
}

// Middlewares returns all parts of the comparison.
func Middlewares() []Middleware {
	return []Middleware{
		{
			"reqlock", "github.com/reqlock/reqlock",
			"Idempotent with its defaults; the client heeds deadlines, as the documentation recommends",
		},
		{
			"Fiber idempotency", "github.com/gofiber/fiber/v3",
			"with its defaults, except for the header Idempotency-Key: a lock within one process, and no fingerprint",
		},
		{
			"Fiber storage/redis", "github.com/gofiber/storage/redis/v3",
			"on a client with the defaults of go-redis",
		},
	}
}
