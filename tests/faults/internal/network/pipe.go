package network

import (
	"io"
	"net"
	"sync"

	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
)

// A Direction is one of the two in which bytes go.
type Direction = stream.Direction

// The directions: of commands, and of replies.
const (
	Upstream   = stream.Upstream
	Downstream = stream.Downstream
)

// A toxicSlot is a place for a toxic on the way, in the order in which bytes pass.
type toxicSlot int

const (
	latencySlot toxicSlot = iota
	bandwidthSlot
	slicerSlot
	breakSlot
	slotCount
)

// maxDelayedPackets is how many packets can be late at the same time.
const maxDelayedPackets = 1024

// A toxicsBySlot is the toxic in each slot; nil where bytes just pass.
type toxicsBySlot [slotCount]toxics.Toxic

// A stream is one direction of one connection. It always has all slots: only what is
// in them changes.
type pipe struct {
	input  *stream.ChanWriter
	stubs  [slotCount]*toxics.ToxicStub
	output <-chan *stream.StreamChunk
}

func newPipe() *pipe {
	first := make(chan *stream.StreamChunk, maxDelayedPackets)
	w := &pipe{input: stream.NewChanWriter(first), output: first}
	for i := range w.stubs {
		next := make(chan *stream.StreamChunk)
		w.stubs[i] = toxics.NewToxicStub(w.output, next)
		w.output = next
	}
	return w
}

// run carries bytes from one side to the other until the first one ends, a toxic
// ends the way, or the other side does not take them. Then it calls over, with the
// error of the other side. What still comes is thrown away, so that nobody on the
// way waits for ever, and run returns when the first side has ended.
func (w *pipe) run(from io.Reader, to io.Writer, s toxicsBySlot, over func(error)) {
	var running sync.WaitGroup
	running.Go(func() {
		_, _ = io.Copy(w.input, from) // that it breaks is its end
		_ = w.input.Close()
	})
	for i, stub := range w.stubs {
		start(stub, s[i])
	}
	_, err := io.Copy(to, stream.NewChanReader(w.output))
	over(err)
	for range w.output {
	}
	running.Wait()
}

// put puts a toxic into a slot.
func (w *pipe) put(place toxicSlot, toxic toxics.Toxic) {
	if stub := w.stubs[place]; stub.InterruptToxic() {
		start(stub, toxic)
	}
}

// start runs the toxic in its slot until it is interrupted, or the way ends.
func start(stub *toxics.ToxicStub, toxic toxics.Toxic) {
	if toxic == nil {
		toxic = new(toxics.NoopToxic)
	}
	go func() {
		stub.Run(&toxics.ToxicWrapper{Toxic: toxic, Toxicity: 1})
		if stub.Closed() {
			// A toxic that ends the way leaves the rest to us.
			for range stub.Input {
			}
		}
	}()
}

// A connection is one connection of a client and its counterpart to the server.
type connection struct {
	client, server *net.TCPConn
	pipes          [stream.NumDirections]*pipe
	once           sync.Once
}

// run carries bytes in both directions until the connection ends.
func (l *connection) run(settings [stream.NumDirections]toxicsBySlot) {
	var up sync.WaitGroup
	up.Go(func() {
		l.pipes[Upstream].run(l.client, l.server, settings[Upstream], func(err error) {
			if err != nil {
				l.close()
			}
			// The server may answer what it got before the client closed its side.
			_ = l.server.CloseWrite()
		})
	})
	l.pipes[Downstream].run(l.server, l.client, settings[Downstream], func(error) { l.close() })
	up.Wait()
}

// close closes both sides. It is safe for concurrent use.
func (l *connection) close() {
	l.once.Do(func() {
		_ = l.client.Close()
		_ = l.server.Close()
	})
}
