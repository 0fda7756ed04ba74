// SPDX-License-Identifier: Apache-2.0

// Interop client and server in grpc-go: interop-go server|client --option=value ...
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: interop-go server|client --option=value ...")
		os.Exit(2)
	}
	role := os.Args[1]
	os.Args = append(os.Args[:1], os.Args[2:]...)
	var err error
	switch role {
	case "server":
		err = runServer(flag.CommandLine)
	case "client":
		err = runClient(flag.CommandLine)
	default:
		err = fmt.Errorf("unknown role %q", role)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "interop-go:", err)
		os.Exit(1)
	}
}
