package picture

// overview draws two requests for one account, on two servers. One runs, and one waits.
func overview() string {
	var c canvas
	const top, bottom = 14.0, 124.0 // of the two rows
	for _, row := range []struct {
		y                          float64
		number, class, what, color string
	}{
		{top, "1", "good", "the handler runs", "goodtext"},
		{bottom, "2", "late", "the request waits", "latetext"},
	} {
		c.box("", 8, row.y, 170, 74)
		c.text("strong", middle, 93, row.y+31, "Client "+row.number)
		c.text("note", middle, 93, row.y+53, "transfer, account 42")
		c.arrow("", 178, row.y+37, 246, row.y+37)
		c.box(row.class, 248, row.y, 180, 74)
		c.text("strong", middle, 338, row.y+31, "Server "+row.number)
		c.text(row.color, middle, 338, row.y+53, row.what)
		c.arrow(row.class, 428, row.y+37, 560, row.y+37)
	}
	c.text("note", middle, 492, top+28, "lock: granted")
	c.text("note", middle, 492, bottom+28, "lock: held, waits")
	c.arrow("good dashed", 338, top+76, 338, bottom-2)
	c.text("note", start, 350, top+97, "at the end: hands the lock over")

	c.box("", 562, top, 150, bottom-top+74)
	c.text("strong", middle, 637, top+31, "Redis")
	c.text("code", middle, 637, top+78, "account:42")
	c.text("goodtext", middle, 637, top+106, "holder: server 1")
	c.text("latetext", middle, 637, top+130, "next: server 2")
	return c.document(720, 212, "Two clients send a transfer of account 42 to two servers. Redis grants the lock to server 1, whose handler runs. "+
		"The request on server 2 waits, and gets the lock when the handler on server 1 has returned.")
}
