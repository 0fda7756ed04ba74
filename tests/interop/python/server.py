#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Interop server in Python grpcio. PYTHONPATH holds the generated echo_pb2."""

import argparse
import time
from concurrent import futures
from pathlib import Path

import grpc

import echo_pb2
import echo_pb2_grpc
from payload import MAX_PAYLOAD, payload


class Server(echo_pb2_grpc.InteropServicer):
    def __init__(self, name):
        self._name = name

    def Echo(self, request, context):
        if request.payload != payload(request.seed, len(request.payload)):
            context.abort(grpc.StatusCode.DATA_LOSS, "the request's payload arrived altered")
        return echo_pb2.EchoReply(payload=request.payload, server=self._name)

    def Stream(self, request, context):
        if request.size > MAX_PAYLOAD:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "size")
        for i in range(request.count):
            yield echo_pb2.Chunk(payload=payload((request.seed + i) & 0xFFFFFFFF, request.size),
                                 server=self._name)
            time.sleep(request.interval_ms / 1000)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", required=True)
    parser.add_argument("--port", type=int, default=50051)
    parser.add_argument("--max-age-ms", type=int, default=0)
    parser.add_argument("--tls", metavar="DIR", help="where cert.pem and key.pem are")
    args = parser.parse_args()

    options = [("grpc.max_connection_age_ms", args.max_age_ms)] if args.max_age_ms else []
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=64), options=options)
    echo_pb2_grpc.add_InteropServicer_to_server(Server(args.name), server)
    address = f"0.0.0.0:{args.port}"
    if args.tls:
        pair = [(Path(args.tls, "key.pem").read_bytes(), Path(args.tls, "cert.pem").read_bytes())]
        server.add_secure_port(address, grpc.ssl_server_credentials(pair))
    else:
        server.add_insecure_port(address)
    server.start()
    print("listening", flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main()
