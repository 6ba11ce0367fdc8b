package wire

// A parser finds the ends of commands in the bytes that a client sends. Clients send
// commands as arrays of bulk strings:
//
//	*2\r\n$3\r\nGET\r\n$1\r\nk\r\n
//
// It keeps its state between calls, since a command may be split anywhere. The zero value
// is at the start of a command. It is not safe for concurrent use.
type parser struct {
	state  state
	number int // the number that is being read
	parts  int // the remaining bulk strings of the command
	skip   int // the remaining bytes of the bulk string, including its line end
}

// A state is what a parser reads.
type state int

const (
	readKind   state = iota // the byte that gives the type
	readNumber              // the length after that byte, up to the line end
	readBulk                // the bytes of a bulk string
)

// ended returns how many commands end in these bytes.
func (p *parser) ended(sent []byte) (commands int) {
	for i := 0; i < len(sent); i++ {
		switch p.state {
		case readKind:
			p.state, p.number = readNumber, 0
		case readNumber:
			if digit := sent[i]; digit >= '0' && digit <= '9' {
				p.number = p.number*10 + int(digit-'0')
				continue
			} else if digit != '\n' {
				continue
			}
			if p.parts == 0 { // it was the length of the array
				p.parts, p.state = p.number, readKind
				continue
			}
			p.skip, p.state = p.number+len("\r\n"), readBulk
		case readBulk:
			step := min(p.skip, len(sent)-i)
			p.skip -= step
			i += step - 1
			if p.skip > 0 {
				continue
			}
			p.state = readKind
			if p.parts--; p.parts == 0 {
				commands++
			}
		}
	}
	return commands
}
