// SPDX-License-Identifier: Apache-2.0
// Out-of-band load reports (gRFC A51) of a WorkQueue: the share of its workers' time that was spent on
// requests, as both cpu_utilization and application_utilization, and the requests answered per second.
#pragma once

#include <memory>
#include <mutex>
#include <set>

#include "proto/xds/service/orca/v3/orca.grpc.pb.h"
#include "tools/unpin-gen/work_queue.h"

namespace unpin::gen {

class OrcaService final : public xds::service::orca::v3::OpenRcaService::CallbackService {
 public:
  // Clients that ask for more frequent reports, or do not say, get this.
  static constexpr Duration kMinInterval = std::chrono::milliseconds(100);

  explicit OrcaService(WorkQueue& queue) : queue_(queue) {}

  grpc::ServerWriteReactor<xds::data::orca::v3::OrcaLoadReport>* StreamCoreMetrics(
      grpc::CallbackServerContext* context,
      const xds::service::orca::v3::OrcaLoadReportRequest* request) override;

  // Ends every stream: they would keep a draining server up.
  void Stop();

 private:
  class Stream;
  void Forget(const std::shared_ptr<Stream>& stream);

  WorkQueue& queue_;
  std::mutex mutex_;
  bool stopping_ = false;
  std::set<std::shared_ptr<Stream>> streams_;
};

}  // namespace unpin::gen
