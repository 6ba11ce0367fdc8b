package picture

// A layer is a middleware, or the handler.
type layer struct {
	name, class string
}

// middlewareOrder draws two orders of middlewares: http.TimeoutHandler outside and inside the
// lock.
func middlewareOrder() string {
	var c canvas
	c.text("title goodtext", start, 12, 26, "Right: the timeout outside")
	c.text("code", start, 12, 50, `http.TimeoutHandler(lock(handler), ...)`)
	c.nestedBoxes(12, []layer{
		{"recover, log", ""},
		{"http.TimeoutHandler", "late"},
		{"authentication, rate limit", ""},
		{"Idempotent", ""},
		{"lock", "good"},
		{"handler", ""},
	})
	c.lines("", start, 12, 348,
		"At the timeout, the client gets 503.",
		"The lock is held until the handler returns.",
		"No second request runs before that.")
	c.text("title badtext", start, 404, 26, "Wrong: the timeout inside")
	c.text("code", start, 404, 50, `lock(http.TimeoutHandler(handler, ...))`)
	c.nestedBoxes(404, []layer{
		{"recover, log", ""},
		{"authentication, rate limit", ""},
		{"Idempotent", ""},
		{"lock", "good"},
		{"http.TimeoutHandler", "bad"},
		{"handler", ""},
	})
	c.lines("", start, 404, 348,
		"At the timeout, TimeoutHandler returns 503.",
		"The lock is released, and the handler still runs.",
		"A second request can run at the same time.")
	return c.document(760, 400, "Right: http.TimeoutHandler is outside the lock, so the lock is held until the handler returns. "+
		"Wrong: it is inside the lock, so the lock is released at the timeout while the handler still runs.")
}

// nestedBoxes draws a box for each layer, the outermost first.
func (c *canvas) nestedBoxes(x float64, layers []layer) {
	const (
		top, width, height = 66.0, 344.0, 254.0
		side, head, foot   = 16.0, 28.0, 14.0
	)
	for i, l := range layers {
		n := float64(i)
		c.box(l.class, x+n*side, top+n*head, width-2*n*side, height-n*(head+foot))
		c.text("code", middle, x+width/2, top+n*head+19, l.name)
	}
}
