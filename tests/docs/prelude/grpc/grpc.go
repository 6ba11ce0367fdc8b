// Package grpc declares the free names of snippets for gRPC. Snippets know examples/bankpb
// by the name pb.
package grpc

import (
	"net"

	"google.golang.org/grpc"

	"github.com/reqlock/reqlock/grpclock"
)

//nolint:unused // snippets use them
var (
	server   *grpc.Server
	listener net.Listener
	methods  grpclock.Key
)
