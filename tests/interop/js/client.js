// SPDX-License-Identifier: Apache-2.0
// Interop client in grpc-js: opens connections, runs one pattern on each, prints a Report as JSON.
'use strict';

const {grpc, Interop, parseArguments} = require('./service');
const {MAX_PAYLOAD, payload} = require('./payload');
const Recorder = require('./recorder');

const PAUSE_MS = 4;
const DEADLINE_MS = 20000;

const options = parseArguments({target: '', pattern: 'unary', connections: 8, seconds: 5, seed: 1});
const recorder = new Recorder(grpc.status);
let end = performance.now() + options.seconds * 1000;

// What is under way then still ends.
process.on('SIGTERM', () => { end = 0; });

// mulberry32
function makeRandom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6D2B79F5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
}

class Connection {
  constructor(index) {
    this.index = index;
    this.random = makeRandom(options.seed * 1000 + index);
    this.stub = new Interop(options.target, grpc.credentials.createInsecure(), {
      // Otherwise all channels to one target share one TCP connection.
      'grpc.use_local_subchannel_pool': 1,
      'grpc.max_receive_message_length': 8 << 20,
    });
  }

  echo(done) {
    const seed = this.random();
    const size = 1 + this.random() % (1 << (this.random() % 16));
    const sent = payload(seed, size);
    const outcome = {connection: this.index, begun: performance.now()};
    this.stub.Echo({seed, payload: sent}, {deadline: Date.now() + DEADLINE_MS}, (error, reply) => {
      outcome.error = error;
      outcome.server = reply && reply.server;
      outcome.corrupt = Boolean(reply) && !reply.payload.equals(sent);
      recorder.add(outcome);
      done();
    });
  }

  stream(count, size, interval, done) {
    const seed = this.random();
    const outcome = {connection: this.index, begun: performance.now(), corrupt: false, split: false};
    const request = {count, size, interval_ms: interval, seed};
    const call = this.stub.Stream(request, {deadline: Date.now() + DEADLINE_MS});
    let received = 0;
    call.on('data', (chunk) => {
      outcome.server = outcome.server || chunk.server;
      if (chunk.server !== outcome.server) outcome.split = true;
      if (!chunk.payload.equals(payload((seed + received++) >>> 0, size))) outcome.corrupt = true;
    });
    // Without a listener the error is thrown; the status event carries the same.
    call.on('error', () => {});
    call.on('status', (status) => {
      if (status.code !== grpc.status.OK) outcome.error = status;
      else if (received !== count) outcome.corrupt = true;
      recorder.add(outcome);
      done();
    });
  }
}

function repeat(action) {
  return new Promise((resolve) => {
    const next = () => {
      if (performance.now() >= end) resolve();
      else action(() => setTimeout(next, PAUSE_MS));
    };
    next();
  });
}

function actions(c) {
  switch (options.pattern) {
    case 'stream':
      return [(done) => c.stream(20, 1 + c.random() % 20000, c.random() % 3, done)];
    case 'bulk':
      return [(done) => c.stream(2, MAX_PAYLOAD, 0, done)];
    case 'long':
      return [(done) => c.echo(done), (done) => c.stream(100, 1000, 20, done)];
    default:
      return [(done) => c.echo(done)];
  }
}

const running = [];
for (let index = 0; index < options.connections; ++index) {
  running.push(...actions(new Connection(index)).map(repeat));
}
Promise.all(running).then(() => {
  console.log(JSON.stringify(recorder.finish()));
  process.exit(0);
});
