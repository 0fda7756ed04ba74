// SPDX-License-Identifier: Apache-2.0
// One end of one connection: sends its source's stream in writes of 1 to 4000 bytes, verifies the other end's, and
// closes by FIN when both are done.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "tests/netns/raw/frame_source.h"
#include "tests/netns/raw/random.h"
#include "tests/netns/raw/script.h"
#include "tests/netns/raw/verifier.h"
#include "userspace/base/unique_fd.h"

namespace unpin::raw {

struct Outcome {
  absl::Status status;  // DataLoss: not exact; NotFound: no GOAWAY came; else the connection failed
  Style style = Style::kIdle;
  uint64_t sent = 0;
  uint64_t received = 0;
  std::optional<uint64_t> goaway_at = std::nullopt;
};

class Peer {
 public:
  // `socket` is connected. A client without a GOAWAY after `patience` goes on without; nobody waits longer than
  // twice that for anything.
  Peer(UniqueFd socket, Side side, uint64_t seed, std::chrono::seconds patience);

  // Bytes that were read from the socket before.
  absl::Status TakeEarly(std::span<const uint8_t> bytes) { return verifier_.Take(bytes); }

  Outcome Run();

 private:
  using Clock = std::chrono::steady_clock;
  enum class Phase { kPrologue, kMiddle, kEpilogue, kFinished };

  bool MayGoOn() const;  // from the middle to the epilogue
  void Refill();
  void Advance();
  absl::Status Step();
  absl::Status Read();
  absl::Status Write();

  UniqueFd socket_;
  Side side_;
  Script script_;
  FrameSource source_;
  Verifier verifier_;
  Random pace_;
  Clock::time_point give_up_;
  Clock::time_point deadline_;

  Phase phase_ = Phase::kPrologue;
  uint64_t made_ = 0;           // bytes handed to pending_ so far
  uint64_t epilogue_from_ = 0;  // made_ when it began
  Bytes pending_;
  size_t written_ = 0;  // of pending_
  Clock::time_point next_write_;
  bool has_shut_ = false;
  bool has_ended_ = false;  // FIN has come
  absl::Status end_;        // what the verifier said then
};

}  // namespace unpin::raw
