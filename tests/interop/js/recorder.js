// SPDX-License-Identifier: Apache-2.0
// Gathers what the client saw; the fields are those of Report in echo.proto.
'use strict';

const LISTED_FAILURES = 50;

module.exports = class Recorder {
  constructor(codes) {
    this.codes = codes;
    this.start = performance.now();
    this.tookMs = [];
    this.last = new Map();
    this.report = {rpcs: 0, corrupt: 0, split_streams: 0, failed: 0, failures: [], landings: []};
  }

  add({connection, begun, server, error, corrupt, split}) {
    const tookMs = performance.now() - begun;
    const atS = (begun - this.start) / 1000;
    this.tookMs.push(tookMs);
    this.report.rpcs += 1;
    if (corrupt || (error && error.code === this.codes.DATA_LOSS)) this.report.corrupt += 1;
    if (split) this.report.split_streams += 1;
    if (error) {
      this.fail({connection, at_s: atS, took_ms: tookMs, code: this.codes[error.code], detail: error.details});
    }
    if (server) this.land(connection, begun, atS, server);
  }

  fail(failure) {
    this.report.failed += 1;
    if (this.report.failures.length < LISTED_FAILURES) this.report.failures.push(failure);
  }

  land(connection, begun, atS, server) {
    const last = this.last.get(connection) || {begun: 0, server: ''};
    // A long RPC ends after shorter ones that were begun later elsewhere.
    if (begun < last.begun) return;
    this.last.set(connection, {begun, server});
    if (server !== last.server) this.report.landings.push({connection, at_s: atS, server});
  }

  finish() {
    const times = this.tookMs.sort((a, b) => a - b);
    const quantile = (share) => times.length ? times[Math.floor(share * (times.length - 1))] : 0;
    this.report.p50_ms = quantile(0.5);
    this.report.p99_ms = quantile(0.99);
    this.report.max_ms = quantile(1);
    return this.report;
  }
};
