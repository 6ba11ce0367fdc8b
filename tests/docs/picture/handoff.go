package picture

// handoff draws three requests for one key, with a lock that is handed over, and with a lock
// for which the others poll.
func handoff() string {
	var c canvas
	c.text("title", start, 12, 26, "reqlock hands the lock over")
	c.text("note", start, 12, 46, "Requests run in the order of their arrival. A waiter checks Redis about once a second, and sends nothing else.")
	over := lanes{&c, 62}
	over.run(0, 0, 30)
	over.wait(1, 4, 30, "waits")
	over.run(1, 30, 60)
	over.wait(2, 10, 60, "waits")
	over.run(2, 60, 90)
	over.handOver(0, 30)
	over.handOver(1, 60)

	c.text("title", start, 12, 212, "A lock that polls")
	c.text("note", start, 12, 232, "Each waiter asks again after a pause. The first request that asks after a release gets the lock.")
	poll := lanes{&c, 248}
	poll.idle(30, 37)
	poll.idle(67, 72)
	poll.run(0, 0, 30)
	poll.wait(1, 4, 72, "")
	poll.wait(2, 10, 37, "")
	poll.run(2, 37, 67)
	poll.run(1, 72, 100)
	for _, at := range []float64{4, 14, 24, 40, 51, 62} {
		poll.ask(1, at)
	}
	for _, at := range []float64{10, 19, 28} {
		poll.ask(2, at)
	}
	c.cross("bad", 116, 385, 4)
	c.text("note", start, 128, 389, "asks Redis, without success")
	c.box("bad", 330, 377, 16, 16)
	c.text("note", start, 354, 389, "the key is free, and no request runs")
	return c.document(760, 404, "Three requests for one key. With reqlock, each request gets the lock as soon as the one before ends, in the order of arrival. "+
		"With polling, waiters ask again and again, the key stays free for a while, and a later request can overtake an earlier one.")
}

// lanes are three lanes of requests. Times are in hundredths of the width.
type lanes struct {
	*canvas
	top float64
}

// names are the names of the requests.
var names = [...]string{"Request A", "Request B", "Request C"}

func (l lanes) x(at float64) float64        { return 96 + at*6.5 }
func (l lanes) y(lane int) float64          { return l.top + float64(lane)*40 }
func (l lanes) named(lane int)              { l.text("strong", start, 12, l.y(lane)+19, names[lane]) }
func (l lanes) middle(a, b float64) float64 { return (l.x(a) + l.x(b)) / 2 }

// run draws the time in which a request runs.
func (l lanes) run(lane int, from, to float64) {
	if lane == 0 {
		l.named(lane)
	}
	l.box("good", l.x(from), l.y(lane), l.x(to)-l.x(from), 28)
	l.text("", middle, l.middle(from, to), l.y(lane)+19, "runs")
}

// wait draws the time in which a request waits.
func (l lanes) wait(lane int, from, to float64, text string) {
	l.named(lane)
	l.box("wait", l.x(from), l.y(lane), l.x(to)-l.x(from), 28)
	l.text("note", middle, l.middle(from, to), l.y(lane)+18, text)
}

// handOver draws how the lock goes from a request to the next one.
func (l lanes) handOver(lane int, at float64) {
	l.arrow("good", l.x(at), l.y(lane)+28, l.x(at), l.y(lane+1)-1)
	l.text("note", start, l.x(at)+8, l.y(lane)+20, "released and granted in one step")
}

// ask draws a request that asks for the lock and does not get it.
func (l lanes) ask(lane int, at float64) { l.cross("bad", l.x(at), l.y(lane)+14, 4) }

// idle draws a time in which no request runs, behind all lanes.
func (l lanes) idle(from, to float64) {
	l.box("bad", l.x(from), l.y(0)-4, l.x(to)-l.x(from), l.y(2)-l.y(0)+36)
}
