package network

import (
	"io"
	"net"
	"sync"

	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
)

// A Direction is a direction of bytes.
type Direction = stream.Direction

// The directions of commands and of replies.
const (
	Upstream   = stream.Upstream
	Downstream = stream.Downstream
)

// A toxicSlot is the position of a toxic, in the order in which bytes pass.
type toxicSlot int

const (
	latencySlot toxicSlot = iota
	bandwidthSlot
	slicerSlot
	breakSlot
	slotCount
)

// maxDelayedPackets is how many packets can be delayed at a time.
const maxDelayedPackets = 1024

// A toxicsBySlot has the toxic of each slot, or nil.
type toxicsBySlot [slotCount]toxics.Toxic

// A pipe is one direction of one connection. It always has all slots: only their toxics
// change.
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

// run copies bytes until the source ends, a toxic ends the pipe, or a write fails. Then it
// calls over with the error of the write. It discards all further bytes, so that no
// goroutine blocks, and returns when the source has ended.
func (w *pipe) run(from io.Reader, to io.Writer, s toxicsBySlot, over func(error)) {
	var running sync.WaitGroup
	running.Go(func() {
		_, _ = io.Copy(w.input, from) // an error ends the source
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

// start runs a toxic in its slot until it is interrupted or the pipe ends.
func start(stub *toxics.ToxicStub, toxic toxics.Toxic) {
	if toxic == nil {
		toxic = new(toxics.NoopToxic)
	}
	go func() {
		stub.Run(&toxics.ToxicWrapper{Toxic: toxic, Toxicity: 1})
		if stub.Closed() {
			// A toxic that ends the pipe leaves bytes behind.
			for range stub.Input {
			}
		}
	}()
}

// A connection is the connection of a client, and the one to the server.
type connection struct {
	client, server *net.TCPConn
	pipes          [stream.NumDirections]*pipe
	once           sync.Once
}

// run copies bytes in both directions until the connection ends.
func (l *connection) run(settings [stream.NumDirections]toxicsBySlot) {
	var up sync.WaitGroup
	up.Go(func() {
		l.pipes[Upstream].run(l.client, l.server, settings[Upstream], func(err error) {
			if err != nil {
				l.close()
			}
			// The server may still reply to commands that were sent before the client
			// closed its side.
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
