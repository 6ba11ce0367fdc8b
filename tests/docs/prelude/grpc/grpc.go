// Package grpc declares the free names of snippets for gRPC. Snippets know examples/bankpb
// by the name pb.
package grpc

import (
	"net"

	"google.golang.org/grpc"
)

//nolint:unused // snippets use them
var (
	server   *grpc.Server
	listener net.Listener
)
