// SPDX-License-Identifier: Apache-2.0
// The pseudo-random payloads of echo.proto.
'use strict';

const POOL_BYTES = 1114112;

function makePool() {
  const pool = Buffer.alloc(POOL_BYTES);
  let word = 2463534242;
  for (let at = 0; at < POOL_BYTES; at += 4) {
    word ^= word << 13;
    word ^= word >>> 17;
    word ^= word << 5;
    pool.writeInt32LE(word | 0, at);
  }
  return pool;
}

const pool = makePool();

exports.MAX_PAYLOAD = 1048576;
exports.payload = (seed, size) => {
  const offset = Math.imul(seed, 2654435761) >>> 16;
  return pool.subarray(offset, offset + size);
};
