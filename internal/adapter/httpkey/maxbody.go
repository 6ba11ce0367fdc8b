package httpkey

// DefaultMaxBody is the maximum number of bytes of a body that key functions read, by
// default.
const DefaultMaxBody = 1 << 20

// A BodyOption is a setting of a key function that reads the body. All HTTP adapters have
// it.
type BodyOption struct{ maxBody int64 }

// MaxBody sets the maximum number of bytes of a body. A longer body is
// core.ErrBodyTooLarge. A limit below 1 panics.
func MaxBody(bytes int64) BodyOption {
	must(bytes > 0, "MaxBody needs a limit above 0")
	return BodyOption{bytes}
}

// maxBodyOf returns the limit of the last option.
func maxBodyOf(opts []BodyOption) int64 {
	limit := int64(DefaultMaxBody)
	for _, opt := range opts {
		must(opt.maxBody > 0, "BodyOption: the zero one sets no limit, use MaxBody")
		limit = opt.maxBody
	}
	return limit
}
