package core

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"
	"unicode"

	"github.com/redis/go-redis/v9"

	"github.com/reqlock/reqlock/internal/redis/registry"
	"github.com/reqlock/reqlock/internal/redis/script"
)

// An Instance says which process of which program a Locker belongs to, for the people who run it: see
// WithInstance. A text has at most 128 bytes of printable characters.
type Instance struct {
	// Service is the name of the program: the path of its main package if "".
	Service string
	// Version is the version of the program: that of the main module if "", or else the revision of
	// its source.
	Version string
	// Host is the name of the machine: that of os.Hostname if "".
	Host string
	// PID is the number of the process: that of os.Getpid if 0.
	PID int
}

// maxInstanceText is the largest length of a text of an Instance.
const maxInstanceText = 128

// WithInstance registers this process in Redis, so that an operator finds out who holds a lock: off if
// not set. The token in the key of a lock begins with the id of the process, and the record of the
// process says which one that is: the Instance, when it started, how many leases it holds, how many
// callers wait, and the 20 leases that it has held longest, with the digest and the name of the key, the
// time of the grant, and the caller if WithCaller is on. It says the same of the 20 keys that its callers
// have waited for longest, with how many wait. Package inspect shows the records. Blank fields of the
// Instance get a default.
//
// The record is the hash {<prefix>process:<id>}:p. It is written at the first lock and each 10 s
// after that, by a goroutine and a command of its own. It lives for an hour, and Close deletes it. In a
// quorum each server has a record. A record that cannot be written changes nothing for a lock, and is
// part of no Outage. If a server refuses it, the observer receives one Warned event.
//
// A process that has not written for 30 s is silent, and its record says which one it was. It may run
// nevertheless, so its leases may be held.
//
// With the option, the connection of the Locker's subscription has the name reqlock-<id> in CLIENT
// LIST, unless a type of the program wraps the client. Connections of the program keep their names.
// The log and Event.Process have the id with and without the option.
//
// The option needs no rights of Redis beside those of each Locker. Only New and NewQuorum accept it.
func WithInstance(instance Instance) Option {
	return rootOption{"WithInstance", byBoth, func(r *root) error {
		for name, text := range map[string]string{"Service": instance.Service, "Version": instance.Version, "Host": instance.Host} {
			if err := checkInstanceText(name, text); err != nil {
				return err
			}
		}
		if instance.PID < 0 {
			return fmt.Errorf("reqlock: WithInstance: the PID %d is negative", instance.PID)
		}
		r.instance = &instance
		return nil
	}}
}

// checkInstanceText refuses a text that a terminal or a page cannot show.
func checkInstanceText(name, text string) error {
	if len(text) > maxInstanceText {
		return fmt.Errorf("reqlock: WithInstance: %s has %d bytes: use at most %d", name, len(text), maxInstanceText)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }) {
		return fmt.Errorf("reqlock: WithInstance: %s is %q: use printable characters", name, text)
	}
	return nil
}

// withDefaults returns the instance without blank fields, as far as they are known.
func (i Instance) withDefaults() Instance {
	if build, ok := debug.ReadBuildInfo(); ok {
		if i.Service == "" {
			i.Service = build.Path
		}
		if i.Version == "" {
			i.Version = versionOf(build)
		}
	}
	if i.Host == "" {
		i.Host, _ = os.Hostname()
	}
	if i.PID == 0 {
		i.PID = os.Getpid()
	}
	return i
}

// versionOf returns the version of the program, or else the revision of its source, or "".
func versionOf(build *debug.BuildInfo) string {
	const unknown = "(devel)"
	if version := build.Main.Version; version != "" && version != unknown {
		return version
	}
	for _, setting := range build.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	return ""
}

// subscriptionName returns the name of the connection of the Locker's subscription; "" is none.
func (s *settings) subscriptionName() string {
	if s.instance == nil {
		return ""
	}
	return "reqlock-" + s.process
}

// newBeater returns what registers the process of the Locker; nil without WithInstance.
func (l *Locker) newBeater(servers []redis.UniversalClient) *registry.Beater {
	if l.settings.instance == nil {
		return nil
	}
	instance, started := l.settings.instance.withDefaults(), time.Now()
	return registry.New(registry.Config{
		Servers: servers, Prefix: l.settings.prefix, ID: l.settings.process, Bound: l.settings.commandTimeout,
		Record: func() registry.Process {
			load := l.engine.Load(registry.MaxEntries)
			p := registry.Process{
				Service: instance.Service, Version: instance.Version, Host: instance.Host, PID: instance.PID,
				Started: started, Beat: time.Now(), Held: load.Held, Waiting: load.Waiting,
			}
			for _, h := range load.Holds {
				p.Holds = append(p.Holds, registry.Hold{
					Digest: EventKey{h.Key}.String(), Lease: script.Digest(h.Token), Name: h.Name, Since: h.Since, Caller: h.Caller,
					Idempotent: h.Attempt, Shared: h.Shared,
				})
			}
			for _, w := range load.Waits {
				p.Waits = append(p.Waits, registry.Wait{
					Digest: EventKey{w.Key}.String(), Name: w.Name, Since: w.Since, Caller: w.Caller, Requests: w.Callers,
				})
			}
			return p
		},
		Refused: func(err error) {
			l.engine.Warn(fmt.Errorf("reqlock: WithInstance: this process is not registered: %w", l.settings.explain(err)))
		},
	})
}
