// SPDX-License-Identifier: Apache-2.0
// A listening socket on loopback, and what a test may do with it.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <vector>

#include "userspace/base/unique_fd.h"

namespace unpin::testkit {

class Listener {
 public:
  // Connections stand without being accepted. `backlog` 0: one of them.
  explicit Listener(int backlog = 64) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    const int on = 1;
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
    sockaddr_in address = LoopbackAt(0);
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(socket_.get(), backlog), 0);
    socklen_t size = sizeof(address);
    ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }

  uint16_t port() const { return port_; }
  UniqueFd Accept() { return UniqueFd(::accept(socket_.get(), nullptr, nullptr)); }
  void Close() { socket_ = UniqueFd(); }

  // From now on SYNs are not answered, as by a lost host. The listener must have been made with backlog 0.
  void GoSilent() {
    for (int i = 0; i < 4; ++i) {
      UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
      sockaddr_in address = LoopbackAt(port_);
      ::connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address));
      fillers_.push_back(std::move(client));
    }
  }

 private:
  static sockaddr_in LoopbackAt(uint16_t port) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return address;
  }

  UniqueFd socket_;
  uint16_t port_ = 0;
  std::vector<UniqueFd> fillers_;
};

}  // namespace unpin::testkit
