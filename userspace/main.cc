// SPDX-License-Identifier: Apache-2.0
// unpind: wires the parts together. No decision is made here.
#include <spdlog/spdlog.h>
#include <sys/signalfd.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "userspace/admin/server.h"
#include "userspace/agent/config.h"
#include "userspace/agent/controller.h"
#include "userspace/agent/event_loop.h"
#include "userspace/agent/store.h"
#include "userspace/agent/validate.h"
#include "userspace/base/log.h"
#include "userspace/base/status.h"
#include "userspace/datapath/attach.h"
#include "userspace/datapath/controls.h"
#include "userspace/datapath/events.h"
#include "userspace/datapath/flows.h"
#include "userspace/datapath/layout.h"
#include "userspace/datapath/neighbors.h"
#include "userspace/datapath/program.h"
#include "userspace/datapath/recovery.h"
#include "userspace/datapath/splicer.h"
#include "userspace/datapath/tables.h"
#include "userspace/monitor/health_monitor.h"

namespace unpin {
namespace {

constexpr char kVersion[] = "0.1.0";
constexpr Duration kProbeInterval = std::chrono::seconds(5);
constexpr Duration kStopGrace = std::chrono::seconds(1);

struct Options {
  std::string config;
  std::string socket = "/run/unpin/unpind.sock";
  std::string state_dir = "/var/lib/unpin";
  std::string bpffs = "/sys/fs/bpf/unpin";
  std::string log_level = "info";
  bool detach_on_exit = false;
  bool detach = false;
};

ControlSettings ControlsOf(const Settings& settings) {
  return {.snat = settings.snat, .reset_unknown = settings.reset_unknown};
}

std::vector<InterfaceView> ViewsOf(const Attachments& attachments) {
  std::vector<InterfaceView> views;
  for (const Attachment& attachment : attachments.list()) {
    views.push_back({.name = attachment.interface.name,
                     .mode = attachment.native ? "native" : "generic",
                     .dispatcher = attachment.way == Attachment::Way::kDispatcher});
  }
  return views;
}

void Complain(const absl::Status& status) {
  if (!status.ok()) spdlog::error("{}", std::string(status.message()));
}

// The kernel's side of the agent, in the order in which it must be opened and, reversed, closed.
struct Kernel {
  std::unique_ptr<Program> program;
  std::unique_ptr<Controls> controls;
  std::unique_ptr<Neighbors> neighbors;
  std::unique_ptr<KernelTables> tables;
  std::unique_ptr<KernelFlows> flows;
  std::unique_ptr<KernelSplicer> splicer;
  std::unique_ptr<Recovery> recovery;
};

template <typename T>
absl::Status Take(absl::StatusOr<std::unique_ptr<T>> made, std::unique_ptr<T>& into) {
  if (!made.ok()) return made.status();
  into = *std::move(made);
  return absl::OkStatus();
}

absl::Status OpenKernel(const Options& options, const Settings& settings, Kernel& kernel) {
  absl::StatusOr<Program> program =
      Program::Load({.bpffs = options.bpffs, .connections = settings.connections});
  if (!program.ok()) return program.status();
  kernel.program = std::make_unique<Program>(*std::move(program));
  for (const std::string& warning : kernel.program->warnings()) spdlog::warn("{}", warning);
  const Program& loaded = *kernel.program;
  absl::Status status = Take(Controls::Open(loaded.data_plane().maps.controls), kernel.controls);
  if (status.ok()) status = Take(Neighbors::Open(*kernel.controls), kernel.neighbors);
  if (status.ok()) status = Take(KernelTables::Open(loaded), kernel.tables);
  if (status.ok()) status = Take(KernelFlows::Open(loaded), kernel.flows);
  if (status.ok()) status = Take(KernelSplicer::Open(loaded), kernel.splicer);
  if (status.ok()) status = Take(Recovery::Open(loaded), kernel.recovery);
  return status;
}

// SIGTERM, SIGINT and SIGHUP as a descriptor; to be called before any thread is started.
absl::StatusOr<UniqueFd> OpenSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  UniqueFd fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return ErrnoStatus(errno, "receive signals");
  return fd;
}

std::map<std::string, uint64_t> CountersOf(const Recovery& recovery) {
  const RecoveryCounts& counts = recovery.counts();
  return {{"recovery_captures", counts.captures},
          {"recovery_gaps", counts.gaps},
          {"recovery_recovered", counts.recovered},
          {"recovery_stale", counts.stale},
          {"recovery_given_up", counts.given_up}};
}

void Reload(const Options& options, Kernel& kernel, Controller& controller) {
  const absl::StatusOr<Config> config = LoadConfig(options.config);
  absl::Status status = config.status();
  if (status.ok()) status = controller.Reload(*config, Now());
  if (status.ok()) status = kernel.controls->Apply(ControlsOf(config->settings));
  if (status.ok()) spdlog::info("configuration reloaded; interfaces and limits change at a restart only");
  else spdlog::error("configuration not reloaded, the running one stays: {}", std::string(status.message()));
}

// Runs until a signal stops the loop.
absl::Status Serve(const Options& options, const UniqueFd& signals, EventLoop& loop, Kernel& kernel, HealthMonitor& monitor,
                   Controller& controller, Attachments& attachments) {
  absl::StatusOr<std::unique_ptr<EventRing>> events =
      OpenEvents(*kernel.program, [&](const FlowEvent& event) {
        if (event.type == FlowEvent::Type::kNoNeighbor) Complain(kernel.neighbors->OnMissing(Now()));
        controller.OnEvent(event, Now());
      });
  if (!events.ok()) return events.status();
  absl::Status status;
  status.Update(loop.Watch((*events)->fd(), [&] { Complain((*events)->Consume()); }));
  status.Update(loop.Watch(kernel.recovery->fd(), [&] { Complain(kernel.recovery->OnReadable(Now())); }));
  status.Update(loop.Watch(monitor.fd(), [&] { Complain(monitor.OnReadable(Now())); }));
  status.Update(loop.Watch(kernel.neighbors->fd(), [&] { Complain(kernel.neighbors->OnReadable()); }));
  status.Update(loop.Watch(signals.get(), [&] {
    signalfd_siginfo info;
    while (::read(signals.get(), &info, sizeof(info)) == sizeof(info)) {
      if (info.ssi_signo == SIGHUP) Reload(options, kernel, controller);
      else loop.Stop();
    }
  }));
  if (!status.ok()) return status;

  absl::StatusOr<std::unique_ptr<AdminServer>> server = AdminServer::Start(controller, options.socket);
  if (!server.ok()) return server.status();
  spdlog::info("ready: admin API on {}", options.socket);
  TimePoint probe_due = Now() + kProbeInterval;
  status = loop.Run([&](TimePoint now) { return std::min({controller.NextDue(now), monitor.NextDue(), probe_due}); },
                    [&](TimePoint now) {
                      monitor.Tick(now);
                      Complain(controller.Tick(now));
                      Complain(kernel.recovery->Tick(now));
                      if (now < probe_due) return;
                      probe_due = now + kProbeInterval;
                      Complain(kernel.neighbors->Probe());
                      for (const std::string& trouble : attachments.CheckAgain()) spdlog::warn("{}", trouble);
                    });
  (*server)->Stop(kStopGrace);
  return status;
}

// Everything above the kernel's side. Takes off again what it attached if it fails, or is told to.
absl::Status RunOn(Kernel& kernel, const Options& options, const Config& config, const UniqueFd& signals) {
  absl::StatusOr<std::unique_ptr<FileStore>> store = FileStore::Open(options.state_dir);
  if (!store.ok()) return store.status();
  absl::StatusOr<std::unique_ptr<EventLoop>> loop = EventLoop::Create();
  if (!loop.ok()) return loop.status();
  // What follows changes the gateway, step by step: so everything that can be refused is refused before.
  absl::Status status = ValidateDesired((*store)->Merge(config.desired),
                                        {.snat_addresses = config.settings.snat.addresses.size()});
  if (!status.ok()) return status;
  Controller* deciding = nullptr;  // the monitor's results go there
  absl::StatusOr<std::unique_ptr<HealthMonitor>> monitor =
      HealthMonitor::Create([&](const ProbeResult& result) { Complain(deciding->OnProbe(result, Now())); });
  if (!monitor.ok()) return monitor.status();
  absl::StatusOr<Attachments> attachments = Attachments::Attach(*kernel.program, config.settings.interfaces);
  if (!attachments.ok()) return attachments.status();
  for (const std::string& warning : attachments->warnings()) spdlog::warn("{}", warning);

  const StatusView facts = {.version = kVersion,
                            .layout = kLayoutTag,
                            .started = Now(),
                            .adopted = kernel.program->adopted(),
                            .interfaces = ViewsOf(*attachments)};
  // Pins of an earlier agent carry its moves' ids: start somewhere else.
  const MoveId first_move = 1 + (std::random_device{}() & 0x3fffffff);
  Controller controller(
      {*kernel.tables, *kernel.flows, *kernel.splicer, **store},
      {.wake = [&] { (*loop)->Wake(); },
       .backends_changed =
           [&](const std::vector<Endpoint>& backends) {
             std::vector<IpAddress> addresses;
             for (const Endpoint& backend : backends) addresses.push_back(backend.address);
             Complain(kernel.neighbors->SetBackends(addresses));
           },
       .counters = [&] { return CountersOf(*kernel.recovery); },
       .targets_changed = [&](const std::vector<HealthTarget>& targets) { (*monitor)->SetTargets(targets); },
       .probe = [&](BackendId backend) { (*monitor)->ProbeNow(backend); }},
      facts, UNPIN_MAGLEV_SLOTS, first_move);
  deciding = &controller;
  status = kernel.controls->Apply(ControlsOf(config.settings));
  if (status.ok()) status = controller.Start(config, Now());
  if (status.ok()) {
    if (facts.adopted) spdlog::info("adopted the tables of an earlier agent");
    status = Serve(options, signals, **loop, kernel, **monitor, controller, *attachments);
  }
  if (options.detach_on_exit || (!status.ok() && !facts.adopted)) status.Update(attachments->Detach());
  return status;
}

absl::Status RunAgent(const Options& options) {
  absl::StatusOr<UniqueFd> signals = OpenSignals();
  if (!signals.ok()) return signals.status();
  absl::StatusOr<Config> config = LoadConfig(options.config);
  if (!config.ok()) return config.status();
  Kernel kernel;
  absl::Status status = OpenKernel(options, config->settings, kernel);
  if (status.ok()) status = RunOn(kernel, options, *config, *signals);
  // A first start that has failed leaves nothing behind; what an earlier agent left goes on.
  const bool was_first = kernel.program && !kernel.program->adopted();
  if (kernel.program && (options.detach_on_exit || (!status.ok() && was_first))) {
    status.Update(kernel.program->Unpin());
  } else if (status.ok()) {
    spdlog::info("stopped; forwarding goes on. `unpind --detach` ends it");
  }
  return status;
}

int Main(int argc, char** argv) {
  CLI::App app("unpind: an XDP layer-4 load balancer that does not let HTTP/2 pin");
  Options options;
  auto* config = app.add_option("--config", options.config, "configuration file (YAML)");
  app.add_option("--socket", options.socket, "unix socket of the admin API")->capture_default_str();
  app.add_option("--state-dir", options.state_dir, "where changes made through the API are kept")->capture_default_str();
  app.add_option("--bpffs", options.bpffs, "directory for pins, in a BPF file system")->capture_default_str();
  app.add_option("--log-level", options.log_level, "trace, debug, info, warn, error or off")->capture_default_str();
  app.add_flag("--detach-on-exit", options.detach_on_exit, "end forwarding when the agent ends");
  app.add_flag("--detach", options.detach, "take off whatever an agent left, and exit")->excludes(config);
  app.set_version_flag("--version", kVersion);
  try {  // the library's way of ending for --help and wrong usage
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  absl::Status status = SetUpLog(options.log_level);
  if (status.ok() && !options.detach && options.config.empty()) {
    std::fprintf(stderr, "unpind: --config is required\n");
    return 2;
  }
  if (status.ok()) status = options.detach ? DetachEverything(options.bpffs) : RunAgent(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "unpind: %s\n", std::string(status.message()).c_str());
  return 1;
}

}  // namespace
}  // namespace unpin

int main(int argc, char** argv) { return unpin::Main(argc, argv); }
