package core

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/reqlock/reqlock/internal/bridge"
	"github.com/reqlock/reqlock/internal/kind"
)

// Join makes one key from several parts. The key is unique for any parts: other parts, or
// parts that are split at another place, make another key. If a part has an error, ErrSkip
// included, that is the error of the key. An empty part is ErrNoKey.
//
// Each part is written as its length in bytes, a colon and the part: "a" and "bc" make
// "1:a2:bc".
//
// The key has no name, even if its parts have one: call Named on the result. Call Permits and Shared
// on the result, too: Join panics for a part that has one of them, because the joined key is another
// key than the part. It also panics without a part, and for a part that is the zero Key or several
// keys (All).
func Join[R any](parts ...Key[R]) Key[R] {
	about, nodes := combined("Join", parts)
	about.Names = nil
	must(len(about.Limits) == 0, "Join: a part has Permits or Shared: call them on what Join returns")
	return keyOf(about, func(env bridge.Env, r R) (lockKey, error) {
		var joined strings.Builder
		for _, part := range nodes {
			key, err := readNode(part, env, r)
			if err != nil {
				return lockKey{}, err
			}
			joined.WriteString(strconv.Itoa(len(key.Raw)))
			joined.WriteByte(':')
			joined.WriteString(key.Raw)
		}
		return lockKey{Raw: joined.String()}, nil
	})
}

// First uses the first of the keys that a request has. It reads the next one only after ErrNoKey,
// so it does not ignore a malformed key. It panics without a key, and for a key that is the zero
// Key or several keys (All).
func First[R any](choices ...Key[R]) Key[R] {
	about, nodes := combined("First", choices)
	return keyOf(about, func(env bridge.Env, r R) (lockKey, error) {
		var calls, parts []string
		reason := ErrNoKey
		for i, choice := range nodes {
			key, err := readNode(choice, env, r)
			if err == nil || !errors.Is(err, ErrNoKey) {
				return key, err
			}
			var mistake kind.Mistake
			switch is := errors.As(err, &mistake); {
			case is && i == 0:
				reason = mistake
			case reason != mistake: //nolint:errorlint // the very mistake
				reason = ErrNoKey // a client can send one of the keys
			}
			var failed *keyPartError
			if errors.As(err, &failed) {
				calls = append(calls, failed.call)
				if failed.part != "" {
					parts = append(parts, failed.part)
				}
			}
		}
		call, part := "First("+strings.Join(calls, ", ")+")", strings.Join(parts, " or ")
		return lockKey{}, &keyPartError{call: call, part: part, err: reason}
	})
}

// All locks several keys for one request, such as both accounts of a transfer. The handler runs
// with all of them, or not at all. They are taken one after the other, in byte order of the written
// keys (see Named and Join), whatever the order of the arguments is. So a transfer from a to b and
// a transfer from b to a do not deadlock. While a request waits for one key, and for a moment when
// it is refused, it holds the keys before it, and their permits. So give the key that many requests
// share a name that sorts last. One wait covers all keys. Equal keys are locked once.
// LeasesFromContext returns their leases in the order of the arguments; a key that returns ErrSkip
// takes no lock, and its lease is nil.
//
// A method of the result changes each of the keys, and WithPermits and WithShared apply to each key
// without a limit of its own. To limit one of them, write All(tenant.Permits(3), report). Join,
// First and the middlewares of idempotent requests refuse several keys. All panics without a key,
// and for the zero Key.
func All[R any](keys ...Key[R]) Key[R] {
	about, nodes := combined("All", keys)
	var all []bridge.Node[R]
	for _, node := range nodes {
		if node.All != nil {
			all = append(all, node.All...)
		} else {
			all = append(all, node)
		}
	}
	about.Several = true
	return Key[R]{bridge.Node[R]{All: all, About: &about}}
}

// Switch chooses a key by a text of the request, such as its method. A request whose text is not in
// keys runs without a lock. of must be safe for concurrent use. Switch panics for a nil function,
// for an empty map and for the zero Key.
func Switch[R any](of func(R) string, keys map[string]Key[R]) Key[R] {
	must(of != nil, "Switch needs a function")
	texts := make([]string, 0, len(keys))
	for text := range keys {
		texts = append(texts, text)
	}
	slices.Sort(texts)
	listed := make([]Key[R], len(texts))
	for i, text := range texts {
		listed[i] = keys[text]
	}
	about, _ := combined("Switch", listed)
	about.Text = "Switch(" + functionOf(of) + ")"
	most := 1
	for _, key := range listed {
		most = max(most, len(key.node.All))
	}
	// Each request has as many keys as the text with the most: the others skip the rest.
	all := make([]bridge.Node[R], most)
	for i := range all {
		chosen := make(map[string]bridge.Node[R], len(keys))
		for text, key := range keys {
			switch {
			case key.node.All == nil && i == 0:
				chosen[text] = key.node
			case i < len(key.node.All):
				chosen[text] = key.node.All[i]
			}
		}
		all[i] = bridge.Node[R]{About: &about, Read: func(env bridge.Env, r R) (lockKey, error) {
			node, ok := chosen[of(r)]
			if !ok {
				return lockKey{}, ErrSkip
			}
			return readNode(node, env, r)
		}}
	}
	if most == 1 {
		return Key[R]{all[0]}
	}
	several := about
	several.Several = true
	return Key[R]{bridge.Node[R]{All: all, About: &several}}
}

// namesIn returns the names that the events of a key may have.
func namesIn(about *bridge.About) []string {
	if len(about.Names) == 0 {
		return []string{""}
	}
	return about.Names
}

// combined returns what the keys read together, and their nodes. It panics if there is none, or if
// one cannot be a part of what the function makes.
func combined[R any](function string, keys []Key[R]) (about bridge.About, nodes []bridge.Node[R]) {
	must(len(keys) > 0, function+" needs a key")
	texts := make([]string, len(keys))
	for i, key := range keys {
		of := key.node.About
		must(of != nil, function+" got the zero Key")
		must(key.node.All == nil || function == "All" || function == "Switch", function+": a part is several keys of All")
		about.Tags = append(about.Tags, of.Tags...)
		about.NeedsWait = about.NeedsWait || of.NeedsWait
		about.Limits = append(about.Limits, of.Limits...)
		about.Names = append(about.Names, namesIn(of)...)
		about.ReadsBody = about.ReadsBody || of.ReadsBody
		texts[i], nodes = of.Text, append(nodes, key.node)
	}
	about.Text = function + "(" + strings.Join(texts, ", ") + ")"
	return about, nodes
}
