// SPDX-License-Identifier: Apache-2.0
// An agent that remembers what it was asked and answers what it was told to.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "userspace/agent/operations.h"

namespace unpin {

class FakeOperations : public Operations {
 public:
  // What the next calls find. Set before the server is used, or by SetMove while it is.
  absl::Status failure;  // of every call that can fail
  StatusView status;
  std::vector<ServiceView> services;
  std::vector<BackendView> backends;
  std::vector<ConnectionView> connections;
  std::vector<MoveView> moves;
  RebalanceView rebalance;
  CountersView counters;

  absl::StatusOr<StatusView> GetStatus() override { return Answer("status", status); }
  absl::StatusOr<std::vector<ServiceView>> ListServices() override {
    return Answer("list services", services);
  }
  absl::StatusOr<ServiceView> AddService(const ServiceSpec& spec) override {
    return Answer(absl::StrCat("add service ", spec.name, " ", spec.vip.ToString(),
                               spec.snat ? " snat" : " no snat"),
                  ServiceView{.spec = spec});
  }
  absl::Status RemoveService(const std::string& service) override {
    return Answer(absl::StrCat("remove service ", service), 0).status();
  }
  absl::StatusOr<std::vector<BackendView>> ListBackends(
      const std::optional<std::string>& service) override {
    return Answer(absl::StrCat("list backends of ", service.value_or("all")), backends);
  }
  absl::StatusOr<BackendView> AddBackend(const std::string& service,
                                         const BackendSpec& spec) override {
    return AnswerBackend(absl::StrCat("add backend weight ", spec.weight), service, spec.endpoint,
                         spec.weight);
  }
  absl::StatusOr<BackendView> SetBackendWeight(const std::string& service, Endpoint backend,
                                               uint32_t weight) override {
    return AnswerBackend(absl::StrCat("set backend weight ", weight), service, backend, weight);
  }
  absl::Status RemoveBackend(const std::string& service, Endpoint backend) override {
    return AnswerBackend("remove backend", service, backend, 0).status();
  }
  absl::StatusOr<BackendView> DrainBackend(const std::string& service, Endpoint backend,
                                           Duration window) override {
    return AnswerBackend(absl::StrCat("drain over ", window.count(), " ns"), service, backend, 100);
  }
  absl::StatusOr<BackendView> UndrainBackend(const std::string& service,
                                             Endpoint backend) override {
    return AnswerBackend("undrain", service, backend, 100);
  }
  absl::StatusOr<std::vector<ConnectionView>> ListConnections(
      const ConnectionFilter& filter) override {
    std::vector<ConnectionView> matching;
    std::copy_if(connections.begin(), connections.end(), std::back_inserter(matching),
                 [&](const ConnectionView& view) { return filter.Matches(view); });
    return Answer("list connections", std::move(matching));
  }
  absl::StatusOr<MoveView> MoveConnection(const MoveOrder& order) override {
    const std::string call =
        absl::StrCat("move ", order.client.ToString(), " of ", order.service.value_or("any"),
                     " to ", order.target ? order.target->ToString() : "any");
    absl::MutexLock lock(&mutex_);
    calls_.push_back(call);
    if (!failure.ok()) return failure;
    return moves.front();
  }
  absl::StatusOr<MoveView> FindMove(MoveId id) override {
    absl::MutexLock lock(&mutex_);
    for (const MoveView& view : moves) {
      if (view.move.id == id) return view;
    }
    return absl::NotFoundError(absl::StrCat("move ", id, ": forgotten"));
  }
  absl::StatusOr<std::vector<MoveView>> ListMoves(const std::optional<std::string>& service,
                                                  size_t limit) override {
    return Answer(absl::StrCat("list ", limit, " moves of ", service.value_or("all")), moves);
  }
  absl::StatusOr<RebalanceView> Rebalance(const RebalanceOrder& order) override {
    return Answer(absl::StrCat("rebalance mode ", static_cast<int>(order.mode), " of ", order.service.value_or("all")), rebalance);
  }
  absl::StatusOr<CountersView> GetCounters() override { return Answer("counters", counters); }
  std::shared_ptr<EventQueue> Watch(bool connections) override {
    absl::MutexLock lock(&mutex_);
    auto queue = std::make_shared<EventQueue>(connections);
    watchers_.push_back(queue);
    return queue;
  }

  // Every call so far but FindMove and Watch.
  std::vector<std::string> Calls() {
    absl::MutexLock lock(&mutex_);
    return calls_;
  }
  void Publish(const Event& event) {
    absl::MutexLock lock(&mutex_);
    for (const std::weak_ptr<EventQueue>& watcher : watchers_) {
      if (const auto queue = watcher.lock()) queue->Push(event);
    }
  }
  // Replaces the move of the same id and tells the watchers.
  void SetMove(const MoveView& view) {
    {
      absl::MutexLock lock(&mutex_);
      std::replace_if(
          moves.begin(), moves.end(),
          [&](const MoveView& old) { return old.move.id == view.move.id; }, view);
    }
    Publish(Event{.time = Now(),
                  .type = absl::StrCat("move-", ToString(view.move.state)),
                  .service = view.service,
                  .message = "",
                  .move = view});
  }
  void AwaitCall(const std::string& call) {
    absl::MutexLock lock(&mutex_);
    const auto called = [&] {
      return std::find(calls_.begin(), calls_.end(), call) != calls_.end();
    };
    mutex_.Await(absl::Condition(&called));
  }
  size_t CountWatchers() {
    absl::MutexLock lock(&mutex_);
    return LiveWatchers();
  }

 private:
  template <typename Value>
  absl::StatusOr<Value> Answer(const std::string& call, Value value) {
    absl::MutexLock lock(&mutex_);
    calls_.push_back(call);
    if (!failure.ok()) return failure;
    return value;
  }
  absl::StatusOr<BackendView> AnswerBackend(const std::string& call, const std::string& service,
                                            Endpoint backend, uint32_t weight) {
    BackendView view;
    view.service = service;
    view.endpoint = backend;
    view.weight = weight;
    return Answer(absl::StrCat(call, " ", service, " ", backend.ToString()), view);
  }
  size_t LiveWatchers() const {
    return std::count_if(watchers_.begin(), watchers_.end(),
                         [](const auto& watcher) { return !watcher.expired(); });
  }

  absl::Mutex mutex_;
  std::vector<std::string> calls_;
  std::vector<std::weak_ptr<EventQueue>> watchers_;
};

}  // namespace unpin
