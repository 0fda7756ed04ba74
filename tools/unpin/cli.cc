// SPDX-License-Identifier: Apache-2.0
#include "tools/unpin/cli.h"

#include <google/protobuf/util/time_util.h>

#include <algorithm>

#include <CLI/CLI.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tools/unpin/session.h"

namespace unpin {
namespace {

using Stub = Session::Stub;

// "10.1.1.2:50051" into the two fields of a request; the agent judges them.
template <typename Request>
void SetEndpoint(const std::string& text, Request& request) {
  const size_t colon = text.rfind(':');
  uint32_t port = 0;
  if (colon != std::string::npos && absl::SimpleAtoi(text.substr(colon + 1), &port)) request.set_port(port);
  request.set_address(text.substr(0, colon));
}

template <typename Request>
Request BackendRequest(const Flags& flags) {
  Request request;
  request.set_service(flags.service);
  SetEndpoint(flags.address, request);
  return request;
}

// Fills `into` from "2s"; false if it is not a duration.
bool ParseInto(const std::string& text, google::protobuf::Duration* into) {
  absl::Duration duration;
  if (!absl::ParseDuration(text, &duration) || duration < absl::ZeroDuration()) return false;
  *into = google::protobuf::util::TimeUtil::NanosecondsToDuration(absl::ToInt64Nanoseconds(duration));
  return true;
}

std::string NotADuration(const std::string& text) {
  return absl::StrCat("\"", text, "\" is not a duration such as 500ms or 2s");
}

class Commands {
 public:
  explicit Commands(const CliEnvironment& environment) : environment_(environment) {
    app_.require_subcommand(1);
    app_.add_option("--socket", flags_.socket, "unix socket of unpind")->capture_default_str();
    app_.add_flag("--json", flags_.json, "print the response as JSON");
    app_.add_flag("--watch{1}", flags_.watch, "show again every second, or --watch=SECONDS");
    AddNouns();
    AddBackendVerbs();
    AddServiceVerbs();
    AddMove();
    AddRebalance();
  }

  int Run(std::vector<std::string> arguments) {
    std::ranges::reverse(arguments);  // as the library wants them
    try {  // the library's way of ending for --help and wrong usage
      app_.parse(arguments);
    } catch (const CLI::ParseError& error) {
      return Explain(error);
    }
    Session session(flags_, environment_);
    return action_(session);
  }

 private:
  using Action = std::function<int(Session&)>;

  int Explain(const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app_.exit(error, environment_.out, environment_.err);  // --help
    const std::vector<std::string> unknown = app_.remaining(/*recurse=*/true);
    environment_.err << "unpin: "
                     << (unknown.empty() ? error.what() : absl::StrCat("\"", unknown.front(), "\" is not known here"))
                     << "; see unpin --help\n";
    return 2;
  }

  CLI::App* Command(CLI::App* parent, const char* name, const char* help, Action action) {
    CLI::App* command = parent->add_subcommand(name, help);
    command->fallthrough();
    command->callback([this, action = std::move(action)] { action_ = action; });
    return command;
  }

  CLI::App* Group(const char* name, const char* help) {
    return app_.add_subcommand(name, help)->require_subcommand(1)->fallthrough();
  }

  void TakeBackend(CLI::App* command) {
    command->add_option("SERVICE", flags_.service, "name of the service")->required();
    command->add_option("BACKEND", flags_.address, "address:port")->required();
  }

  void AddNouns() {
    Command(&app_, "status", "the agent",
            [](Session& s) { return s.Show(&Stub::GetStatus, v1::GetStatusRequest()); });
    Command(&app_, "services", "virtual services",
            [](Session& s) { return s.Show(&Stub::ListServices, v1::ListServicesRequest()); });
    Command(&app_, "backends", "backends and their load", [this](Session& s) {
      v1::ListBackendsRequest request;
      request.set_service(flags_.service);
      return s.Show(&Stub::ListBackends, request);
    })->add_option("--service", flags_.service, "of this service only");
    Command(&app_, "top", "load, share, target and latency of each backend; with --watch a live view", [this](Session& s) {
      v1::ListBackendsRequest request;
      request.set_service(flags_.service);
      return s.ShowTop(request);
    })->add_option("--service", flags_.service, "of this service only");
    AddConnections();
    CLI::App* moves = Command(&app_, "moves", "moves, newest first", [this](Session& s) {
      v1::ListMovesRequest request;
      request.set_service(flags_.service);
      request.set_limit(flags_.limit);
      return s.Show(&Stub::ListMoves, request);
    });
    moves->add_option("--service", flags_.service, "of this service only");
    moves->add_option("--limit", flags_.limit, "at most so many")->capture_default_str();
    Command(&app_, "counters", "packets by verdict, and the agent's own counters",
            [](Session& s) { return s.Show(&Stub::GetCounters, v1::GetCountersRequest()); });
    Command(&app_, "events", "events as they happen", [this](Session& s) {
      v1::WatchEventsRequest request;
      request.set_connections(flags_.connections);
      return s.ShowEvents(request);
    })->add_flag("--connections", flags_.connections, "also each connection opened and closed");
  }

  void AddConnections() {
    CLI::App* connections = Command(&app_, "connections", "open connections", [this](Session& s) {
      v1::ListConnectionsRequest request;
      request.set_service(flags_.service);
      request.set_client(flags_.client);
      request.set_backend(flags_.backend);
      request.set_protocol(flags_.protocol);
      if (flags_.spliceable || flags_.not_spliceable) request.set_spliceable(flags_.spliceable);
      return s.ShowConnections(request);
    });
    connections->add_option("--service", flags_.service, "to this service");
    connections->add_option("--client", flags_.client, "from this address or address:port");
    connections->add_option("--backend", flags_.backend, "on this backend, address:port");
    connections->add_option("--protocol", flags_.protocol, "h2, tls, http1, opaque or unknown");
    auto* yes = connections->add_flag("--spliceable", flags_.spliceable, "that could be moved now");
    connections->add_flag("--not-spliceable", flags_.not_spliceable, "that could not")->excludes(yes);
  }

  void AddServiceVerbs() {
    CLI::App* service = Command(add_, "service", "add a service", [this](Session& s) {
      v1::AddServiceRequest request;
      request.mutable_service()->set_name(flags_.name);
      request.mutable_service()->set_snat(!flags_.no_snat);
      SetEndpoint(flags_.address, *request.mutable_service());
      return s.Do(&Stub::AddService, request, absl::StrCat("service ", flags_.name, " added"));
    });
    service->add_option("NAME", flags_.name, "a-z, 0-9 and -")->required();
    service->add_option("VIP", flags_.address, "address:port")->required();
    service->add_flag("--no-snat", flags_.no_snat,
                      "keep the client's address; backends must route back through the gateway");
    Command(remove_, "service", "remove a service", [this](Session& s) {
      v1::RemoveServiceRequest request;
      request.set_name(flags_.name);
      return s.Do(&Stub::RemoveService, request, absl::StrCat("service ", flags_.name, " removed"));
    })->add_option("NAME", flags_.name, "name of the service")->required();
  }

  void AddBackendVerbs() {
    add_ = Group("add", "add a service or a backend");
    remove_ = Group("remove", "remove a service or a backend");
    CLI::App* add = Command(add_, "backend", "add a backend", [this](Session& s) {
      auto request = BackendRequest<v1::AddBackendRequest>(flags_);
      request.set_weight(flags_.weight);
      return s.Do(&Stub::AddBackend, request, absl::StrCat("backend ", flags_.address, " added"));
    });
    TakeBackend(add);
    add->add_option("--weight", flags_.weight, "share of new connections, 0..65535")->capture_default_str();
    CLI::App* set = Command(Group("set", "change a backend"), "backend", "set a backend's weight", [this](Session& s) {
      auto request = BackendRequest<v1::SetBackendRequest>(flags_);
      request.set_weight(flags_.weight);
      return s.Do(&Stub::SetBackend, request, absl::StrCat("backend ", flags_.address, ": weight ", flags_.weight));
    });
    TakeBackend(set);
    set->add_option("--weight", flags_.weight, "share of new connections, 0..65535")->required();
    TakeBackend(Command(remove_, "backend", "remove a backend; its connections stay until they end", [this](Session& s) {
      return s.Do(&Stub::RemoveBackend, BackendRequest<v1::RemoveBackendRequest>(flags_),
                  absl::StrCat("backend ", flags_.address, " removed"));
    }));
    CLI::App* drain = Command(&app_, "drain", "no new connections, and move those there are", [this](Session& s) {
      auto request = BackendRequest<v1::DrainBackendRequest>(flags_);
      if (!flags_.window.empty() && !ParseInto(flags_.window, request.mutable_window())) {
        return s.Usage(NotADuration(flags_.window));
      }
      return s.Do(&Stub::DrainBackend, request, absl::StrCat("backend ", flags_.address, " is draining"));
    });
    TakeBackend(drain);
    drain->add_option("--window", flags_.window, "spread the moves over it (1s)");
    TakeBackend(Command(&app_, "undrain", "take new connections again", [this](Session& s) {
      return s.Do(&Stub::UndrainBackend, BackendRequest<v1::UndrainBackendRequest>(flags_),
                  absl::StrCat("backend ", flags_.address, " is serving"));
    }));
  }

  void AddMove() {
    CLI::App* move = Command(&app_, "move", "move a connection to another backend", [this](Session& s) {
      v1::MoveConnectionRequest request;
      request.set_client(flags_.client);
      request.set_service(flags_.service);
      request.set_target(flags_.target);
      if (!flags_.wait.empty() && !ParseInto(flags_.wait, request.mutable_wait())) {
        return s.Usage(NotADuration(flags_.wait));
      }
      return s.Do(&Stub::MoveConnection, request, [](const v1::Move& answer) {
        v1::ListMovesResponse one;
        *one.add_moves() = answer;
        return TextOf(one);
      });
    });
    move->add_option("CLIENT", flags_.client, "address:port of the client's end")->required();
    move->add_option("--service", flags_.service, "if the client's end has several connections");
    move->add_option("--to", flags_.target, "backend address:port; by default the least loaded for its weight");
    move->add_option("--wait", flags_.wait, "until the move has ended, at most so long");
  }

  void AddRebalance() {
    CLI::App* rebalance = Command(&app_, "rebalance", "what the agent would move, or move it now", [this](Session& s) {
      v1::RebalanceRequest request;
      request.set_service(flags_.service);
      if (flags_.now) request.set_mode(v1::RebalanceRequest::NOW);
      if (flags_.pause) request.set_mode(v1::RebalanceRequest::PAUSE);
      if (flags_.resume) request.set_mode(v1::RebalanceRequest::RESUME);
      return s.Do(&Stub::Rebalance, request, [](const v1::RebalanceResponse& answer) { return TextOf(answer); });
    });
    rebalance->add_option("--service", flags_.service, "of this service only");
    auto* modes = rebalance->add_option_group("mode")->require_option(0, 1);
    modes->add_flag("--dry-run", flags_.dry_run, "show the plan, change nothing (default)");
    modes->add_flag("--now", flags_.now, "begin the plan at once");
    modes->add_flag("--pause", flags_.pause, "move nothing but by order and drain");
    modes->add_flag("--resume", flags_.resume, "end the pause");
  }

  const CliEnvironment& environment_;
  Flags flags_;
  CLI::App app_{"unpin: the command line of unpind. Nouns show, verbs change.", "unpin"};
  CLI::App* add_ = nullptr;
  CLI::App* remove_ = nullptr;
  Action action_;
};

}  // namespace

int RunCli(const std::vector<std::string>& arguments, const CliEnvironment& environment) {
  return Commands(environment).Run(arguments);
}

}  // namespace unpin
