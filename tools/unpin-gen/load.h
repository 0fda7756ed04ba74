// SPDX-License-Identifier: Apache-2.0
// The client of `unpin-gen grpc`: sends by a schedule or in closed loop, and records every RPC's end.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "tools/unpin-gen/arrivals.h"
#include "tools/unpin-gen/channel.h"
#include "tools/unpin-gen/recorder.h"

namespace unpin::gen {

enum class Pattern { kUnary, kServerStreaming };

struct LoadOptions {
  ChannelOptions channel;
  std::vector<double> rates;  // of the connections, in the order of opening; closed loop: all 0
  Spacing spacing = Spacing::kPoisson;
  uint32_t seed = 1;
  bool closed_loop = false;
  size_t streams = 1;  // closed loop: RPCs kept open on each connection
  Pattern pattern = Pattern::kUnary;
  uint32_t request_bytes = 64;
  uint32_t response_bytes = 64;
  uint32_t messages = 10;  // of a stream
  Duration message_interval{0};
  Duration deadline = std::chrono::seconds(5);
  Duration duration = std::chrono::seconds(20);
  std::optional<uint64_t> max_requests;
  Duration bucket = std::chrono::seconds(1);
  size_t expected_backends = 0;
  size_t threads = 1;  // that handle answers
};

class Load {
 public:
  explicit Load(LoadOptions options);
  ~Load();  // requires Finish() after a Start()

  // Makes the channels; unless `lazily`, also their connections, one after the other.
  absl::Status Open(bool lazily, Duration timeout);

  // Begins at once. Requires Open().
  void Start();

  // True once no further request will be sent.
  bool all_sent() const;

  Duration Elapsed() const;
  Progress GetProgress() const;

  // Sends nothing more, and waits until the last RPC has ended.
  v1::LoadReport Finish();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace unpin::gen
