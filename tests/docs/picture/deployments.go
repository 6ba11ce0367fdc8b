package picture

// deployments draws the three kinds of deployment beside each other.
func deployments() string {
	var c canvas
	c.oneRedis(8)
	c.replicas(260)
	c.quorum(512)
	return c.document(760, 352, "Three deployments. One Redis. A master with replicas, where a lock counts after replicas have acknowledged it. "+
		"A quorum of independent servers, of which a majority grants a lock.")
}

// panel draws the frame of a deployment of 240 pixels, with its process and with notes.
func (c *canvas) panel(x float64, title, constructor string, notes ...string) {
	c.box("frame", x, 8, 240, 336)
	c.text("title", start, x+14, 34, title)
	c.text("code", start, x+14, 56, constructor)
	c.box("", x+60, 72, 120, 36)
	c.text("", middle, x+120, 95, "your process")
	c.lines("", start, x+14, 268, notes...)
}

// server draws a Redis server around x.
func (c *canvas) server(class string, x, y, width float64, name string) {
	c.box(class, x-width/2, y, width, 34)
	c.text("", middle, x, y+22, name)
}

func (c *canvas) oneRedis(x float64) {
	c.panel(x, "One Redis", "core.New(rdb)",
		"Fastest. While Redis is down,",
		"no request gets a lock.",
		"A failover can lose a lock.",
		"Fencing and Idempotent work.")
	c.arrow("good", x+120, 108, x+120, 146)
	c.server("good", x+120, 148, 100, "Redis")
}

func (c *canvas) replicas(x float64) {
	c.panel(x, "Replicas", "core.WithReplicas(2, timeout)",
		"A lock counts after n replicas",
		"have it. If one of them becomes",
		"the master, the lock is kept.",
		"Fencing and Idempotent work.")
	c.arrow("good", x+120, 108, x+120, 146)
	c.server("good", x+120, 148, 100, "master")
	for _, at := range []float64{66, 174} {
		c.arrow("good", x+120, 182, x+at, 208)
		c.server("good", x+at, 210, 84, "replica")
	}
}

func (c *canvas) quorum(x float64) {
	c.panel(x, "Quorum", "core.NewQuorum(clients)",
		"A majority grants, so locks work",
		"while a minority is down.",
		"No fencing, no Idempotent,",
		"no common line of all waiters.")
	for i, at := range []float64{44, 120, 196} {
		class := []string{"good", "good", "bad"}[i]
		c.arrow(class, x+120+(at-120)/3, 108, x+at, 164)
		c.server(class, x+at, 166, 66, "Redis")
		c.text(class+"text", middle, x+at, 220, []string{"vote", "vote", "down"}[i])
	}
}
