package httpkey

// DefaultMaxBody is the limit, in bytes, up to which key functions read a body.
const DefaultMaxBody = 1 << 20

// A BodyOption is a setting of a key function that reads the body. It is the
// BodyOption of all adapters on HTTP.
type BodyOption struct{ maxBody int64 }

// MaxBody sets up to how many bytes the body is read; a longer one is
// core.ErrBodyTooLarge. A limit below 1 panics.
func MaxBody(bytes int64) BodyOption {
	must(bytes > 0, "MaxBody needs a limit above 0")
	return BodyOption{bytes}
}

// maxBodyOf returns the limit that the last of the options sets.
func maxBodyOf(opts []BodyOption) int64 {
	limit := int64(DefaultMaxBody)
	for _, opt := range opts {
		must(opt.maxBody > 0, "BodyOption: the zero one sets no limit, use MaxBody")
		limit = opt.maxBody
	}
	return limit
}
