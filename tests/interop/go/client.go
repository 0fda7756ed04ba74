// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"math/rand"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"

	"unpin/interop/echopb"
)

const (
	pause    = 4 * time.Millisecond
	deadline = 20 * time.Second
	window   = 1 << 20
)

type connection struct {
	index    int
	stub     echopb.InteropClient
	recorder *recorder
	mutex    sync.Mutex
	source   *rand.Rand
}

func (c *connection) random() uint32 {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.source.Uint32()
}

func (c *connection) echo() {
	seed := c.random()
	size := 1 + c.random()%(1<<(c.random()%16))
	sent := payload(seed, size)
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	o := outcome{connection: c.index, begun: time.Now()}
	reply, err := c.stub.Echo(ctx, &echopb.EchoRequest{Seed: seed, Payload: sent})
	if o.err = err; err == nil {
		o.server = reply.Server
		o.corrupt = !bytes.Equal(reply.Payload, sent)
	}
	c.recorder.add(o)
}

func (c *connection) stream(count, size, intervalMs uint32) {
	request := &echopb.StreamRequest{Count: count, Size: size, IntervalMs: intervalMs, Seed: c.random()}
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	o := outcome{connection: c.index, begun: time.Now()}
	var received uint32
	stream, err := c.stub.Stream(ctx, request)
	for err == nil {
		var chunk *echopb.Chunk
		if chunk, err = stream.Recv(); err != nil {
			break
		}
		if o.server == "" {
			o.server = chunk.Server
		}
		o.split = o.split || chunk.Server != o.server
		o.corrupt = o.corrupt || !bytes.Equal(chunk.Payload, payload(request.Seed+received, size))
		received++
	}
	if err == io.EOF {
		o.corrupt = o.corrupt || received != count
	} else {
		o.err = err
	}
	c.recorder.add(o)
}

// What is repeated on a connection, each in a goroutine of its own.
func (c *connection) actions(pattern string) []func() {
	switch pattern {
	case "stream":
		return []func(){func() { c.stream(20, 1+c.random()%20000, c.random()%3) }}
	case "bulk":
		return []func(){func() { c.stream(2, maxPayload, 0) }}
	case "long":
		return []func(){c.echo, func() { c.stream(100, 1000, 20) }}
	default:
		return []func(){c.echo}
	}
}

func repeat(action func(), end context.Context, running *sync.WaitGroup) {
	defer running.Done()
	for end.Err() == nil {
		action()
		time.Sleep(pause)
	}
}

func runClient(flags *flag.FlagSet) error {
	target := flags.String("target", "", "")
	pattern := flags.String("pattern", "unary", "")
	connections := flags.Int("connections", 8, "")
	seconds := flags.Float64("seconds", 5, "")
	seed := flags.Int64("seed", 1, "")
	if err := flags.Parse(os.Args[1:]); err != nil {
		return err
	}
	recorder := newRecorder()
	// What is under way at the end, or at SIGTERM, still ends.
	stop, release := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer release()
	end, cancel := context.WithTimeout(stop, time.Duration(*seconds*float64(time.Second)))
	defer cancel()
	var running sync.WaitGroup
	for index := 0; index < *connections; index++ {
		// Fixed windows: before 1.49 the estimator of larger ones fails RPCs by itself (grpc-go issue 5358).
		channel, err := grpc.Dial(*target, grpc.WithInsecure(),
			grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(window),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(8<<20)))
		if err != nil {
			return err
		}
		c := &connection{index: index, stub: echopb.NewInteropClient(channel), recorder: recorder,
			source: rand.New(rand.NewSource(*seed*1000 + int64(index)))}
		for _, action := range c.actions(*pattern) {
			running.Add(1)
			go repeat(action, end, &running)
		}
	}
	running.Wait()
	return json.NewEncoder(os.Stdout).Encode(recorder.finish())
}
