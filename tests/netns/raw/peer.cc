// SPDX-License-Identifier: Apache-2.0
#include "tests/netns/raw/peer.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "userspace/base/status.h"

namespace unpin::raw {
namespace {

constexpr uint32_t kLargestWrite = 4000;

timespec TimespecOf(std::chrono::nanoseconds time) {
  time = std::max(time, std::chrono::nanoseconds(0));
  return {.tv_sec = time.count() / 1'000'000'000, .tv_nsec = time.count() % 1'000'000'000};
}

}  // namespace

Peer::Peer(UniqueFd socket, Side side, uint64_t seed, std::chrono::seconds patience)
    : socket_(std::move(socket)),
      side_(side),
      script_(ScriptOf(side, seed)),
      source_(side, seed),
      verifier_(side == Side::kClient ? Side::kServer : Side::kClient, seed),
      pace_(seed + 1),
      give_up_(Clock::now() + patience),
      deadline_(Clock::now() + 3 * patience),
      next_write_(Clock::now()) {
  const int on = 1;  // each write is a segment
  setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

Outcome Peer::Run() {
  absl::Status status;
  while (status.ok() && !(has_shut_ && has_ended_)) status = Step();
  if (status.ok()) status = end_;
  return {.status = status,
          .style = script_.style,
          .sent = made_ - pending_.size() + written_,
          .received = verifier_.received(),
          .goaway_at = verifier_.goaway_at()};
}

absl::Status Peer::Step() {
  if (written_ == pending_.size()) Refill();
  const bool is_due = Clock::now() >= next_write_;
  const bool has_work = written_ < pending_.size();
  pollfd ready = {.fd = socket_.get(), .events = 0, .revents = 0};
  if (!has_ended_) ready.events |= POLLIN;
  if (has_work && is_due) ready.events |= POLLOUT;
  Clock::time_point until = deadline_;
  if (has_work && !is_due) until = next_write_;
  if (phase_ == Phase::kMiddle && side_ == Side::kClient && Clock::now() < give_up_)
    until = std::min(until, give_up_);
  const timespec wait = TimespecOf(until - Clock::now());
  if (ppoll(&ready, 1, &wait, nullptr) < 0 && errno != EINTR) return ErrnoStatus(errno, "poll");
  if (Clock::now() >= deadline_) {
    return absl::DeadlineExceededError(absl::StrCat("still in phase ", static_cast<int>(phase_),
                                                    " after ", verifier_.received(),
                                                    " bytes received, ", made_, " made"));
  }
  if (ready.revents & (POLLIN | POLLHUP | POLLERR) && !has_ended_) {
    if (absl::Status status = Read(); !status.ok()) return status;
  }
  return ready.revents & POLLOUT ? Write() : absl::OkStatus();
}

absl::Status Peer::Read() {
  std::array<uint8_t, 65536> buffer;
  const ssize_t size = recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (size < 0)
    return errno == EAGAIN
               ? absl::OkStatus()
               : ErrnoStatus(errno, absl::StrCat("receive after ", verifier_.received()));
  if (size > 0) return verifier_.Take(std::span(buffer).first(static_cast<size_t>(size)));
  has_ended_ = true;
  end_ = verifier_.End();
  return absl::IsDataLoss(end_) ? end_ : absl::OkStatus();
}

absl::Status Peer::Write() {
  const size_t most = std::min<size_t>(pending_.size() - written_, pace_.Between(1, kLargestWrite));
  const ssize_t size =
      send(socket_.get(), pending_.data() + written_, most, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (size < 0)
    return errno == EAGAIN ? absl::OkStatus()
                           : ErrnoStatus(errno, absl::StrCat("send after ", made_));
  written_ += static_cast<size_t>(size);
  const bool is_paced = phase_ == Phase::kMiddle || script_.style == Style::kStalling;
  if (is_paced) next_write_ = Clock::now() + PauseOf(script_.style, pace_);
  return absl::OkStatus();
}

bool Peer::MayGoOn() const {
  if (side_ == Side::kServer) return verifier_.has_go();
  return verifier_.goaway_at().has_value() || Clock::now() >= give_up_;
}

// Enters the phases that are due, and makes the next bytes to send, if there are any.
void Peer::Refill() {
  pending_.clear();
  written_ = 0;
  if (source_.at_clean_boundary()) Advance();
  const bool is_silent = phase_ == Phase::kMiddle && script_.style == Style::kIdle;
  if (pending_.empty() && phase_ != Phase::kFinished &&
      !(is_silent && source_.at_clean_boundary())) {
    pending_ = source_.Next();
  }
  made_ += pending_.size();
  // The client closes first, as after any GOAWAY. A server that ends connections on its own, without saying GOAWAY, is
  // taken for one whose process has died, and pins pass it over.
  const bool may_shut = side_ == Side::kClient || has_ended_;
  if (pending_.empty() && phase_ == Phase::kFinished && may_shut && !has_shut_) {
    shutdown(socket_.get(), SHUT_WR);
    has_shut_ = true;
  }
}

void Peer::Advance() {
  // The move waits for a response that has completed.
  if (phase_ == Phase::kPrologue && made_ >= script_.prologue && source_.has_ended_a_stream())
    phase_ = Phase::kMiddle;
  if (phase_ == Phase::kMiddle && MayGoOn()) {
    phase_ = Phase::kEpilogue;
    epilogue_from_ = made_;
    if (side_ == Side::kClient) pending_ = MarkerFrame(kGo, made_);
  } else if (phase_ == Phase::kEpilogue && made_ - epilogue_from_ >= script_.epilogue) {
    phase_ = Phase::kFinished;
    pending_ = MarkerFrame(kFinish, made_);
  }
}

}  // namespace unpin::raw
