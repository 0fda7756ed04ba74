// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"unpin/interop/echopb"
)

type server struct {
	echopb.UnimplementedInteropServer
	name string
}

func (s *server) Echo(_ context.Context, request *echopb.EchoRequest) (*echopb.EchoReply, error) {
	size := len(request.Payload)
	if size > maxPayload || !bytes.Equal(request.Payload, payload(request.Seed, uint32(size))) {
		return nil, status.Error(codes.DataLoss, "the request's payload arrived altered")
	}
	return &echopb.EchoReply{Payload: request.Payload, Server: s.name}, nil
}

func (s *server) Stream(request *echopb.StreamRequest, stream echopb.Interop_StreamServer) error {
	if request.Size > maxPayload {
		return status.Error(codes.InvalidArgument, "size")
	}
	for i := uint32(0); i < request.Count; i++ {
		chunk := &echopb.Chunk{Payload: payload(request.Seed+i, request.Size), Server: s.name}
		if err := stream.Send(chunk); err != nil {
			return err
		}
		time.Sleep(time.Duration(request.IntervalMs) * time.Millisecond)
	}
	return nil
}

func runServer(flags *flag.FlagSet) error {
	name := flags.String("name", "", "")
	port := flags.Int("port", 50051, "")
	maxAge := flags.Int("max-age-ms", 0, "send GOAWAYs like any server with MaxConnectionAge")
	if err := flags.Parse(os.Args[1:]); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", fmt.Sprintf("0.0.0.0:%d", *port))
	if err != nil {
		return err
	}
	age := keepalive.ServerParameters{MaxConnectionAge: time.Duration(*maxAge) * time.Millisecond}
	grpcServer := grpc.NewServer(grpc.KeepaliveParams(age))
	echopb.RegisterInteropServer(grpcServer, &server{name: *name})
	fmt.Println("listening")
	return grpcServer.Serve(listener)
}
