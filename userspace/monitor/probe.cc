// SPDX-License-Identifier: Apache-2.0
#include "userspace/monitor/probe.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace unpin {
namespace {

constexpr size_t kStatusLine = 12;  // "HTTP/1.1 200", RFC 9112 section 4

std::string Milliseconds(Duration duration) {
  return absl::StrFormat("%gms", std::chrono::duration<double, std::milli>(duration).count());
}

// Errors of connect(2) and socket(2) that are about this host.
bool IsOurs(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM ||
         error == EADDRNOTAVAIL || error == EAGAIN || error == EPERM || error == EACCES;
}

}  // namespace

Probe::Probe(const HealthTarget& target, TimePoint now)
    : target_(target), deadline_(now + target.settings.timeout) {
  socket_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket_.valid()) {
    FailToConnect(errno);
    return;
  }
  // A reset at the end leaves no connection waiting on either side.
  const linger abort = {.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &abort, sizeof(abort));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(target.endpoint.address.bits);
  address.sin_port = htons(target.endpoint.port);
  if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 &&
      errno != EINPROGRESS) {
    FailToConnect(errno);
  }
}

Probe::Step Probe::Succeed() {
  is_done_ = true;
  result_ = {.backend = target_.backend, .found = Health::kUp, .decisive = false, .detail = {}};
  socket_ = UniqueFd();
  return Step::kDone;
}

Probe::Step Probe::Fail(Health found, std::string detail) {
  is_done_ = true;
  // A host that is there and refuses needs no second opinion.
  result_ = {.backend = target_.backend,
             .found = found,
             .decisive = found == Health::kRefusing,
             .detail = std::move(detail)};
  socket_ = UniqueFd();
  return Step::kDone;
}

Probe::Step Probe::FailToConnect(int error) {
  if (!IsOurs(error)) {
    return Fail(error == ECONNREFUSED ? Health::kRefusing : Health::kSilent,
                absl::StrCat("connect: ", std::strerror(error)));
  }
  is_done_ = true;
  socket_ = UniqueFd();
  return Step::kDone;
}

Probe::Step Probe::OnDeadline() {
  return Fail(Health::kSilent,
              absl::StrCat(is_connected_ ? "no answer within " : "no connection within ",
                           Milliseconds(target_.settings.timeout)));
}

Probe::Step Probe::OnReady() {
  if (is_done_) return Step::kDone;
  if (is_connected_) return OnAnswer();
  int error = 0;
  socklen_t size = sizeof(error);
  ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return FailToConnect(error);
  is_connected_ = true;
  return OnConnected();
}

Probe::Step Probe::OnConnected() {
  if (target_.settings.kind != HealthSettings::Kind::kHttp) return Succeed();
  const std::string request = absl::StrCat("GET ", target_.settings.path,
                                           " HTTP/1.1\r\nHost: ", target_.endpoint.ToString(),
                                           "\r\nUser-Agent: unpind\r\nConnection: close\r\n\r\n");
  // A fresh connection has room for so little.
  const ssize_t sent = ::send(socket_.get(), request.data(), request.size(), MSG_NOSIGNAL);
  if (sent == static_cast<ssize_t>(request.size())) return Step::kWaiting;
  return Fail(Health::kUnwell, absl::StrCat("send the request: ", std::strerror(errno)));
}

// Reads all there is: news come once (EPOLLET), and the end may have come with the answer.
Probe::Step Probe::OnAnswer() {
  while (answer_.size() < kStatusLine) {
    char bytes[256];
    const ssize_t got = ::recv(socket_.get(), bytes, sizeof(bytes), 0);
    if (got < 0 && errno == EAGAIN) return Step::kWaiting;
    if (got < 0) {
      return Fail(Health::kUnwell, absl::StrCat("read the answer: ", std::strerror(errno)));
    }
    if (got == 0) return Fail(Health::kUnwell, "closed without an answer");
    answer_.append(bytes, static_cast<size_t>(got));
  }
  if (!absl::StartsWith(answer_, "HTTP/1."))
    return Fail(Health::kUnwell, "the answer is not HTTP/1");
  const std::string status = answer_.substr(9, 3);
  if (status[0] == '2' || status[0] == '3') return Succeed();
  return Fail(Health::kUnwell, absl::StrCat("GET ", target_.settings.path, " answered ", status));
}

}  // namespace unpin
