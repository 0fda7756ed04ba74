// SPDX-License-Identifier: Apache-2.0
// raw-peer: serves, or opens, connections whose every byte is checked. tests/netns/raw/run drives it.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "tests/netns/raw/peer.h"
#include "tests/netns/raw/tally.h"
#include "userspace/base/status.h"

namespace unpin::raw {
namespace {

struct Options {
  std::string target;
  std::vector<std::string> sources;
  uint16_t port = 0;
  int threads = 64;
  uint64_t splices = 0;
  uint64_t seed = 1;
  int patience_s = 20;
};

sockaddr_in AddressOf(const std::string& ip, uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (!ip.empty()) inet_pton(AF_INET, ip.c_str(), &address.sin_addr);
  return address;
}

// The client's opening is read first: it says by which seed the rest goes.
void ServeOne(UniqueFd socket, const Options& options, Tally& tally) {
  uint8_t opening[kClientOpening];
  const ssize_t size = recv(socket.get(), opening, sizeof(opening), MSG_WAITALL);
  if (size != sizeof(opening)) {
    tally.Add(0, {.status = absl::UnavailableError("the connection ended before its opening")});
    return;
  }
  const uint64_t seed = SeedOf(opening);
  Peer peer(std::move(socket), Side::kServer, seed, std::chrono::seconds(options.patience_s));
  const absl::Status early = peer.TakeEarly(opening);
  tally.Add(seed, early.ok() ? peer.Run() : Outcome{.status = early});
}

int Serve(const Options& options) {
  sigset_t awaited;
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGTERM);
  sigprocmask(SIG_BLOCK, &awaited, nullptr);
  const UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const sockaddr_in address = AddressOf("", options.port);
  if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) < 0 ||
      listen(listener.get(), 1024) < 0) {
    std::perror("raw-peer: listen");
    return 1;
  }
  Tally tally;
  std::vector<std::jthread> threads;
  for (int i = 0; i < options.threads; ++i) {
    threads.emplace_back([&] {
      for (;;) {
        UniqueFd accepted(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!accepted.valid()) return;
        ServeOne(std::move(accepted), options, tally);
      }
    });
  }
  std::puts("listening");
  std::fflush(stdout);
  int number = 0;
  sigwait(&awaited, &number);
  shutdown(listener.get(), SHUT_RDWR);  // wakes every accept
  threads.clear();
  std::puts(tally.Json().c_str());
  return 0;
}

Outcome ConnectOne(const Options& options, const std::string& source, uint64_t seed) {
  UniqueFd connected(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const size_t colon = options.target.find(':');
  const sockaddr_in to =
      AddressOf(options.target.substr(0, colon),
                static_cast<uint16_t>(std::stoi(options.target.substr(colon + 1))));
  const sockaddr_in from = AddressOf(source, 0);
  if (!source.empty() &&
      bind(connected.get(), reinterpret_cast<const sockaddr*>(&from), sizeof(from)) < 0)
    return {.status = ErrnoStatus(errno, "bind")};
  if (connect(connected.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)) < 0)
    return {.status = ErrnoStatus(errno, "connect")};
  return Peer(std::move(connected), Side::kClient, seed, std::chrono::seconds(options.patience_s))
      .Run();
}

int Connect(const Options& options) {
  Tally tally;
  std::atomic<uint64_t> taken = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < options.threads; ++i) {
    // The same source again and again: its next connection is the one that takes the pin.
    const std::string source =
        options.sources.empty() ? ""
                                : options.sources[static_cast<size_t>(i) % options.sources.size()];
    threads.emplace_back([&, source] {
      for (uint64_t ticket; (ticket = taken++) < options.splices;) {
        const uint64_t seed = (options.seed << 32) + ticket;
        tally.Add(seed, ConnectOne(options, source, seed));
      }
    });
  }
  threads.clear();
  std::puts(tally.Json().c_str());
  return 0;
}

int Main(int argc, char** argv) {
  CLI::App app("connections whose every byte is checked");
  app.require_subcommand(1);
  Options options;
  app.add_option("--threads", options.threads, "connections at a time");
  app.add_option("--patience", options.patience_s, "seconds a client waits for its GOAWAY");
  CLI::App* serve = app.add_subcommand("serve");
  serve->add_option("--port", options.port)->required();
  CLI::App* connect = app.add_subcommand("connect");
  connect->add_option("--target", options.target, "IP:PORT")->required();
  connect->add_option("--source", options.sources, "addresses to connect from")->delimiter(',');
  connect->add_option("--splices", options.splices, "connections in all")->required();
  connect->add_option("--seed", options.seed);
  CLI11_PARSE(app, argc, argv);
  return *serve ? Serve(options) : Connect(options);
}

}  // namespace
}  // namespace unpin::raw

int main(int argc, char** argv) { return unpin::raw::Main(argc, argv); }
