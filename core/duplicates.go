package core

import (
	"fmt"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/redis/go-redis/v9"
)

// open has the clients and prefixes of the open Lockers of the process. It is the only state of the
// package, because Lockers with one client do not know each other. It keeps neither a client nor a
// Locker from being collected.
var open = openSet{places: make(map[place]*occupancy)}

// An openSet finds Lockers that share a client and a prefix.
type openSet struct {
	mu     sync.Mutex
	places map[place]*occupancy
}

// A place is a client and a prefix. The pointer is that of the client itself, so a wrapper of a client
// is another client.
type place struct {
	client weak.Pointer[byte]
	prefix string
}

// An occupancy says which Locker has a place. Once a second one has come, it stays as long as the
// client, so that the process gets one warning.
type occupancy struct {
	by     weak.Pointer[registration]
	warned bool
}

// A registration stands for a Locker and all its views. Only they keep it from being collected.
type registration struct {
	isClosed atomic.Bool
	_        *byte // without a pointer it may share a block of memory with what is never collected
}

// register registers the clients of a new Locker. The first Locker that finds another one with a
// client and its prefix sends a Warned event.
func (l *Locker) register(clients []redis.UniversalClient) {
	var places []place
	isSecond := false
	for _, client := range clients {
		address := addressOf(client)
		if address == nil {
			continue
		}
		at := place{weak.Make(address), l.settings.prefix}
		places = append(places, at)
		if open.add(at, l.registration) {
			isSecond = true
			runtime.AddCleanup(address, open.drop, at)
		}
	}
	runtime.AddCleanup(l.registration, open.vacate, places)
	if isSecond {
		l.settings.notify(Event{Kind: Warned, Err: fmt.Errorf("reqlock: this process has several Lockers with one redis client and the prefix %q: "+
			"each counts as a process, and has goroutines and connections of its own, and their locks refuse or wait for each other within a request: "+
			"make one Locker for the process, not one for each request, and views with With", l.settings.prefix)})
	}
}

// addressOf returns the address of a client, or nil if the client is no pointer, or a pointer to
// nothing, which does not identify it.
func addressOf(client redis.UniversalClient) *byte {
	v := reflect.ValueOf(client)
	if v.Kind() != reflect.Pointer || v.Type().Elem().Size() == 0 {
		return nil
	}
	return (*byte)(v.UnsafePointer())
}

// add adds a Locker. It returns true the first time that the place has another one that is open.
func (r *openSet) add(at place, l *registration) (isSecond bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	there := r.places[at]
	switch {
	case there == nil || !there.warned && !there.isOpen():
		r.places[at] = &occupancy{by: weak.Make(l)}
		return false
	case there.warned:
		return false
	default:
		there.warned = true
		return true
	}
}

// isOpen reports whether the Locker is neither closed nor collected.
func (o *occupancy) isOpen() bool {
	l := o.by.Value()
	return l != nil && !l.isClosed.Load()
}

// vacate deletes the places of a Locker that was collected, unless another one has them.
func (r *openSet) vacate(places []place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, at := range places {
		if there := r.places[at]; there != nil && !there.warned && !there.isOpen() {
			delete(r.places, at)
		}
	}
}

// drop deletes a place whose client was collected.
func (r *openSet) drop(at place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.places, at)
}
