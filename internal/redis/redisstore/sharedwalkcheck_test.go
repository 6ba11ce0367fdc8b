package redisstore

import (
	"fmt"
	"slices"
	"strings"
)

// check returns what is wrong with the state after a command, or "".
func (w *walk) check(what, own, answer string, before, after *walkState) string {
	asked := what == "ask" || what == "try"
	isVoid := before.marked && len(before.leases) == 0 // a marker without a set: only an ask removes it
	if after.marked != (len(after.leases) > 0) && (asked || !isVoid) {
		return fmt.Sprintf("marker %v, and %d leases", after.marked, len(after.leases))
	}
	if granted := strings.HasPrefix(answer, "granted") || answer == "kept"; granted != after.holds(own) && what != "release" {
		return fmt.Sprintf("%s has a lease: %v", own, after.holds(own))
	}
	if what == "release" && (after.holds(own) || slices.Contains(after.queue, own)) {
		return own + " is not gone"
	}
	for i, name := range after.queue {
		if slices.Contains(after.queue[:i], name) || after.holds(name) {
			return name + " is in the queue twice, or has a lease"
		}
	}
	return w.checkGrants(what, own, before, after)
}

// checkGrants checks which tokens were granted.
func (w *walk) checkGrants(what, own string, before, after *walkState) string {
	var came []string
	for _, name := range after.names() {
		if after.holds(name) && !before.holds(name) {
			came = append(came, name)
		}
	}
	order := append(slices.Clone(before.queue), own)
	place := func(name string) int { return slices.Index(order, name) }
	slices.SortFunc(came, func(a, b string) int { return place(a) - place(b) })
	stayed := len(after.leases) - len(came)
	if after.alone != "" {
		stayed = 0
	}
	for i, name := range came {
		if stayed+i >= need(name) {
			return fmt.Sprintf("%s is number %d", name, stayed+i+1)
		}
		if name != own && w.conns[name[:1]] == nil {
			return name + " does not listen"
		}
	}
	w.granted += len(came)
	opens := after.marked && (stayed == 0 || before.alone == own)
	if opens {
		w.opened++
	}
	var passed []string
	for _, name := range came {
		for _, other := range order[:place(name)] {
			if !slices.Contains(after.queue, other) || other == own {
				continue
			}
			if !isExclusive(other) || !opens {
				return fmt.Sprintf("%s has passed %s", name, other)
			}
			passed = append(passed, other)
		}
	}
	slices.Sort(passed)
	for _, name := range slices.Compact(passed) {
		if w.passed[name] {
			return name + " was passed by two openings"
		}
		w.passed[name] = true
	}
	stay := func(queue, in []string) []string {
		return slices.DeleteFunc(slices.Clone(queue), func(name string) bool { return !slices.Contains(in, name) })
	}
	if !slices.Equal(stay(before.queue, after.queue), stay(after.queue, before.queue)) {
		return "the order of the queue has changed"
	}
	asked := what == "ask" || what == "try"
	if first := slices.Concat(after.queue, []string{""})[0]; first != "" && after.alone == "" && (after.marked || asked) &&
		len(after.leases) < need(first) {
		return "the first of the queue has room: " + first
	}
	return ""
}
