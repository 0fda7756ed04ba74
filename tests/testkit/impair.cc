// SPDX-License-Identifier: Apache-2.0
// impair NEAR FAR [options]: joins two interfaces by a bad wire (impair.bpf.c) until SIGTERM, and prints what it did as
// JSON. SIGUSR1: all bare ACKs from NEAR to FAR are lost; SIGHUP: all TCP from FAR to NEAR is; SIGUSR2: as at the start.
// Each change is printed once it holds.
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tests/testkit/impair.h"

#include "tests/netns/impair.skel.h"
#include "userspace/base/status.h"
#include "userspace/base/unique_fd.h"

namespace unpin {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::array<std::string, 2> interfaces;
  double loss_percent = 1;
  double late_percent = 5;
  double delay_ms = 2;
  uint32_t seed = 1;
};

// Frames that XDP redirects into a tap device come out later where its XDP program sends them.
class DelayLine {
 public:
  static absl::StatusOr<DelayLine> Create(const std::string& name) {
    UniqueFd fd(open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
    if (!fd.valid()) return ErrnoStatus(errno, "open /dev/net/tun");
    ifreq request = {};
    name.copy(request.ifr_name, IFNAMSIZ - 1);
    request.ifr_flags = IFF_TAP | IFF_NO_PI;
    if (ioctl(fd.get(), TUNSETIFF, &request) != 0) {
      return ErrnoStatus(errno, absl::StrCat("create tap device ", name));
    }
    UniqueFd control(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    request.ifr_flags = IFF_UP | IFF_NOARP;
    if (ioctl(control.get(), SIOCSIFFLAGS, &request) != 0) {
      return ErrnoStatus(errno, absl::StrCat("set up tap device ", name));
    }
    return DelayLine(std::move(fd), if_nametoindex(name.c_str()));
  }

  int fd() const { return fd_.get(); }
  unsigned ifindex() const { return ifindex_; }
  uint64_t released() const { return released_; }
  bool empty() const { return held_.empty(); }
  Clock::time_point next() const { return held_.front().due; }

  void TakeAll(Clock::time_point due) {
    std::array<char, 2048> frame;
    for (ssize_t size; (size = read(fd_.get(), frame.data(), frame.size())) > 0;) {
      held_.push_back({due, {frame.data(), static_cast<size_t>(size)}});
    }
  }

  void ReleaseDue(Clock::time_point now) {
    for (; !held_.empty() && held_.front().due <= now; held_.pop_front()) {
      const std::string& frame = held_.front().bytes;
      if (write(fd_.get(), frame.data(), frame.size()) > 0) ++released_;
    }
  }

 private:
  DelayLine(UniqueFd fd, unsigned ifindex) : fd_(std::move(fd)), ifindex_(ifindex) {}

  struct Held {
    Clock::time_point due;
    std::string bytes;
  };
  UniqueFd fd_;
  unsigned ifindex_;
  uint64_t released_ = 0;
  std::deque<Held> held_;
};

struct SkeletonDeleter {
  void operator()(impair_skel* skeleton) const { impair_skel__destroy(skeleton); }
};

struct Wire {
  std::unique_ptr<impair_skel, SkeletonDeleter> skeleton;
  std::vector<DelayLine> delays;  // by direction
  std::vector<bpf_link*> links;   // their programs go with the process
  impair_direction rules;         // of both directions, as at the start

  ~Wire() {
    for (bpf_link* link : links) bpf_link__destroy(link);
  }
  Wire() = default;
  Wire(Wire&&) = default;
};

absl::Status PutDevice(bpf_map* map, uint32_t direction, uint32_t ifindex) {
  const int error =
      bpf_map__update_elem(map, &direction, sizeof(direction), &ifindex, sizeof(ifindex), BPF_ANY);
  return error == 0 ? absl::OkStatus() : ErrnoStatus(-error, "put into a devmap");
}

absl::Status Attach(Wire& wire, bpf_program* program, unsigned ifindex) {
  bpf_link* link = bpf_program__attach_xdp(program, ifindex);
  if (!link) return ErrnoStatus(errno, absl::StrCat("attach ", bpf_program__name(program)));
  wire.links.push_back(link);
  return absl::OkStatus();
}

absl::StatusOr<Wire> Join(const Options& options) {
  Wire wire;
  wire.skeleton.reset(impair_skel__open());
  if (!wire.skeleton) return ErrnoStatus(errno, "open the impairment object");
  wire.skeleton->rodata->seed = options.seed;
  if (const int error = impair_skel__load(wire.skeleton.get()); error != 0) {
    return ErrnoStatus(-error, "load the impairment object");
  }
  wire.rules = {.loss_permille = static_cast<uint32_t>(options.loss_percent * 10),
                .late_permille = static_cast<uint32_t>(options.late_percent * 10),
                .block_acks = 0};
  auto& programs = wire.skeleton->progs;
  const std::array<bpf_program*, 2> ingress = {programs.forth, programs.back};
  const std::array<bpf_program*, 2> late = {programs.forth_late, programs.back_late};
  for (uint32_t direction : {0, 1}) {
    const unsigned from = if_nametoindex(options.interfaces[direction].c_str());
    const unsigned to = if_nametoindex(options.interfaces[1 - direction].c_str());
    if (from == 0) return absl::NotFoundError("no interface " + options.interfaces[direction]);
    auto delay = DelayLine::Create(absl::StrCat(direction == 0 ? "f-" : "b-",
                                                options.interfaces[0]).substr(0, IFNAMSIZ - 1));
    if (!delay.ok()) return delay.status();
    absl::Status status = PutDevice(wire.skeleton->maps.delays, direction, delay->ifindex());
    status.Update(PutDevice(wire.skeleton->maps.exits, direction, to));
    status.Update(Attach(wire, late[direction], delay->ifindex()));
    status.Update(Attach(wire, ingress[direction], from));
    if (!status.ok()) return status;
    wire.delays.push_back(*std::move(delay));
    wire.skeleton->bss->directions[direction] = wire.rules;
  }
  return wire;
}

void PrintCounts(const Wire& wire) {
  std::printf("{\"directions\": [");
  for (int direction : {0, 1}) {
    const impair_counts& count = wire.skeleton->bss->counts[direction];
    std::printf("%s{\"packets\": %llu, \"lost\": %llu, \"late\": %llu, \"released\": %llu, \"blocked\": %llu}",
                direction == 0 ? "" : ", ", count.packets, count.lost, count.late,
                static_cast<unsigned long long>(wire.delays[direction].released()), count.blocked);
  }
  std::printf("]}\n");
}

// Returns false when it is time to end.
bool ObeySignal(Wire& wire, int signals) {
  signalfd_siginfo info;
  if (read(signals, &info, sizeof(info)) != sizeof(info)) return true;
  if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT) return false;
  impair_direction* directions = wire.skeleton->bss->directions;
  const char* done = "restored";
  directions[0] = directions[1] = wire.rules;
  if (info.ssi_signo == SIGUSR1) {
    directions[0].block_acks = 1;
    done = "acks blocked";
  } else if (info.ssi_signo == SIGHUP) {
    directions[1].loss_permille = 1000;
    done = "replies cut";
  }
  std::printf("%s\n", done);
  std::fflush(stdout);
  return true;
}

void Serve(Wire& wire, int signals, std::chrono::nanoseconds delay) {
  const UniqueFd timer(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  for (;;) {
    itimerspec alarm = {};
    for (const DelayLine& line : wire.delays) {
      if (line.empty()) continue;
      const long left = std::max<long>(1, (line.next() - Clock::now()).count());
      if (alarm.it_value.tv_nsec == 0 || left < alarm.it_value.tv_nsec) alarm.it_value.tv_nsec = left;
    }
    timerfd_settime(timer.get(), 0, &alarm, nullptr);
    pollfd ready[] = {{wire.delays[0].fd(), POLLIN, 0}, {wire.delays[1].fd(), POLLIN, 0},
                      {signals, POLLIN, 0}, {timer.get(), POLLIN, 0}};
    if (poll(ready, 4, -1) < 0) continue;
    const Clock::time_point now = Clock::now();
    for (DelayLine& line : wire.delays) {
      line.TakeAll(now + delay);
      line.ReleaseDue(now);
    }
    if (ready[2].revents != 0 && !ObeySignal(wire, signals)) return;
  }
}

int Run(int argc, char** argv) {
  CLI::App app("joins two interfaces by a bad wire");
  Options options;
  app.add_option("near", options.interfaces[0])->required();
  app.add_option("far", options.interfaces[1])->required();
  app.add_option("--loss", options.loss_percent, "percent of TCP packets lost")->check(CLI::Range(0., 100.));
  app.add_option("--late", options.late_percent, "percent overtaken by others")->check(CLI::Range(0., 100.));
  app.add_option("--delay-ms", options.delay_ms, "how late")->check(CLI::Range(0.1, 900.));
  app.add_option("--seed", options.seed);
  CLI11_PARSE(app, argc, argv);

  sigset_t awaited;
  sigemptyset(&awaited);
  for (int number : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGHUP}) sigaddset(&awaited, number);
  sigprocmask(SIG_BLOCK, &awaited, nullptr);
  const UniqueFd signals(signalfd(-1, &awaited, SFD_CLOEXEC));
  absl::StatusOr<Wire> wire = Join(options);
  if (!wire.ok()) {
    std::fprintf(stderr, "impair: %s\n", wire.status().ToString().c_str());
    return 1;
  }
  std::printf("joined %s and %s, seed %u\n", options.interfaces[0].c_str(), options.interfaces[1].c_str(),
              options.seed);
  std::fflush(stdout);
  Serve(*wire, signals.get(),
        std::chrono::nanoseconds(static_cast<int64_t>(options.delay_ms * 1000000)));
  PrintCounts(*wire);
  return 0;
}

}  // namespace
}  // namespace unpin

int main(int argc, char** argv) { return unpin::Run(argc, argv); }
