package resource

import (
	"context"
	"encoding/json"
	"fmt"
	"net"

	"github.com/reqlock/reqlock/tests/faults/internal/history"
)

// A User is one client of a Resource, with its own connection. When a method returns, its
// access has been executed and recorded. An error means that the process of the resource is
// gone. A User is not safe for concurrent use.
type User struct {
	process, client int
	conn            net.Conn
	in              *json.Decoder
	out             *json.Encoder
}

// Dial connects the client of a process to the resource at addr.
func Dial(ctx context.Context, addr string, process, client int) (*User, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("reach the resource: %w", err)
	}
	return &User{process, client, conn, json.NewDecoder(conn), json.NewEncoder(conn)}, nil
}

// Close ends the connection.
func (u *User) Close() error { return u.conn.Close() }

// Read reads a register of the key. It returns the version, and false if the register is
// fenced and has seen a higher fencing number.
func (u *User) Read(key string, fenced bool, fence int64) (version int64, ok bool, err error) {
	a, err := u.access(history.Access{Key: key, Fenced: fenced, Fence: fence})
	return a.Version, !a.Refused, err
}

// ReadAgain reads the unfenced register of the key a second time. The caller last checked its
// lease at that time.
func (u *User) ReadAgain(key string, fence, looked int64) error {
	_, err := u.access(history.Access{Key: key, Fence: fence, CheckedAt: looked})
	return err
}

// Write writes a register of the key, based on a version that was read. The caller last
// checked its lease at that time, or passes 0 if it did not. Write returns false if the
// register is fenced and has seen a higher fencing number.
func (u *User) Write(key string, fenced bool, fence, version, looked int64) (ok bool, err error) {
	a, err := u.access(history.Access{Key: key, Fenced: fenced, Fence: fence, Write: true, Version: version, CheckedAt: looked})
	return !a.Refused, err
}

func (u *User) access(a history.Access) (reply, error) {
	a.Process, a.Client = u.process, u.client
	return u.call(request{Access: &a})
}

// Charge records a charge for the payment of that key, in the attempt with that number,
// under that lease.
func (u *User) Charge(key string, number int, lease string) error {
	_, err := u.call(request{Effect: &history.Effect{
		Process: u.process, Client: u.client, Key: key, Number: number, Lease: lease,
	}})
	return err
}

// Payment returns the number of a payment to be made. Several users get the same one.
func (u *User) Payment() (int, error) {
	a, err := u.call(request{})
	return a.Payment, err
}

func (u *User) call(request request) (a reply, err error) {
	if err = u.out.Encode(request); err == nil {
		err = u.in.Decode(&a)
	}
	if err != nil {
		return a, fmt.Errorf("ask the resource: %w", err)
	}
	return a, nil
}
