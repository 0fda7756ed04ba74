// SPDX-License-Identifier: Apache-2.0
// Interop server in grpc-js.
'use strict';

const {grpc, Interop, parseArguments} = require('./service');
const {MAX_PAYLOAD, payload} = require('./payload');

const options = parseArguments({name: '', port: 50051, 'max-age-ms': 0});

function echo(call, callback) {
  const request = call.request;
  if (!request.payload.equals(payload(request.seed, request.payload.length))) {
    callback({code: grpc.status.DATA_LOSS, details: "the request's payload arrived altered"});
    return;
  }
  callback(null, {payload: request.payload, server: options.name});
}

function stream(call) {
  const {count, size, interval_ms: interval, seed} = call.request;
  if (size > MAX_PAYLOAD) {
    call.emit('error', {code: grpc.status.INVALID_ARGUMENT, details: 'size'});
    return;
  }
  let sent = 0;
  const next = () => {
    if (call.cancelled) return;
    if (sent === count) {
      call.end();
      return;
    }
    const room = call.write({payload: payload((seed + sent++) >>> 0, size), server: options.name});
    if (interval > 0) setTimeout(next, interval);
    else if (room) setImmediate(next);
    else call.once('drain', next);
  };
  next();
}

const age = options['max-age-ms'];
const server = new grpc.Server(age > 0 ? {'grpc.max_connection_age_ms': age} : {});
server.addService(Interop.service, {Echo: echo, Stream: stream});
server.bindAsync(`0.0.0.0:${options.port}`, grpc.ServerCredentials.createInsecure(), (error) => {
  if (error) {
    console.error(`listen on port ${options.port}: ${error.message}`);
    process.exit(1);
  }
  console.log('listening');
});
