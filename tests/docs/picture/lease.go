package picture

import "strconv"

// leaseTimeline draws a lease that is renewed, then lost, because its process is paused. A
// fence refuses what the process does afterwards.
func leaseTimeline() string {
	var c canvas
	t := timeline{&c}
	t.axis()

	// The lane of Redis.
	t.lane(0, "Redis")
	t.span("good", 0, 0, 16.7, "account:42 is held by A")
	t.span("good", 0, 16.7, 24, "held by B")
	c.line("late", t.x(6.7), 100, t.x(16.7), 100)
	c.line("late", t.x(6.7), 95, t.x(6.7), 105)
	c.line("late", t.x(16.7), 95, t.x(16.7), 105)
	c.text("latetext", middle, t.x(12.5), 118, "TTL: 10 s from the last renewal")

	// The lane of process A, with its commands.
	t.lane(1, "Process A")
	t.span("good", 1, 0, 8, "runs, fence 7")
	t.span("late", 1, 8, 20, "paused")
	t.span("", 1, 20, 24, "acts again")
	for i, what := range []string{"lock", "renew", "renew"} {
		at := []float64{0.15, 3.33, 6.7}[i]
		c.arrow("", t.x(at), t.y(1), t.x(at), t.y(0)+31)
		c.text("note", start, t.x(at)+6, t.y(1)-22, what)
	}

	// The lane of process B.
	t.lane(2, "Process B")
	t.span("wait", 2, 5, 16.7, "waits")
	t.span("good", 2, 16.7, 24, "runs, fence 8")
	c.line("bad dashed", t.x(16.5), 60, t.x(16.5), 366)
	c.lines("badtext", end, t.x(16.5)-8, 322, "A's context ends with ErrLost,", "just before the key expires.", "The paused process does not notice.")

	// The lane of the resource.
	t.lane(3, "Database")
	c.line("axis", t.x(0), t.y(3)+15, t.x(24), t.y(3)+15)
	c.arrow("good", t.x(18.5), t.y(2)+30, t.x(18.5), t.y(3)+8)
	c.dot("good", t.x(18.5), t.y(3)+15)
	c.text("goodtext", middle, t.x(18.7), t.y(3)+38, "8: written")
	c.line("bad dashed", t.x(22), t.y(1)+30, t.x(22), t.y(2))
	c.arrow("bad", t.x(22), t.y(2)+30, t.x(22), t.y(3)+8)
	c.dot("bad", t.x(22), t.y(3)+15)
	c.text("badtext", middle, t.x(22.3), t.y(3)+38, "7: refused")
	return c.document(760, 376, "A lease with a TTL of 10 seconds is renewed every 3.3 seconds. Its process is paused, so the key expires 10 seconds after the last renewal. "+
		"Another process gets the lock with fence 8. When the first process acts again, the database refuses its fence 7.")
}

// A timeline has four lanes. Times are in seconds.
type timeline struct{ *canvas }

func (t timeline) x(seconds float64) float64 { return 100 + seconds*26.8 }
func (t timeline) y(lane int) float64        { return []float64{60, 140, 210, 280}[lane] }

// axis draws the seconds.
func (t timeline) axis() {
	t.text("note", start, 12, 30, "seconds")
	t.line("axis", t.x(0), 40, t.x(24), 40)
	for second := 0; second <= 24; second += 4 {
		at := t.x(float64(second))
		t.line("axis", at, 36, at, 44)
		t.text("note", middle, at, 30, strconv.Itoa(second))
	}
}

// lane draws the name of a lane.
func (t timeline) lane(n int, name string) { t.text("strong", start, 12, t.y(n)+20, name) }

// span draws what is in a lane in a time.
func (t timeline) span(class string, lane int, from, to float64, text string) {
	t.box(class, t.x(from), t.y(lane), t.x(to)-t.x(from), 30)
	t.text("", middle, (t.x(from)+t.x(to))/2, t.y(lane)+20, text)
}
