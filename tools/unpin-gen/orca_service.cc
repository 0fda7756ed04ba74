// SPDX-License-Identifier: Apache-2.0
#include "tools/unpin-gen/orca_service.h"

#include <algorithm>

namespace unpin::gen {
namespace {

using xds::data::orca::v3::OrcaLoadReport;
using xds::service::orca::v3::OrcaLoadReportRequest;

Duration IntervalOf(const OrcaLoadReportRequest& request) {
  const auto& wanted = request.report_interval();
  const Duration interval =
      std::chrono::seconds(wanted.seconds()) + std::chrono::nanoseconds(wanted.nanos());
  return std::max(interval, OrcaService::kMinInterval);
}

}  // namespace

// Alive until gRPC is done with it; the timer holds it weakly.
class OrcaService::Stream final : public grpc::ServerWriteReactor<OrcaLoadReport>,
                                  public std::enable_shared_from_this<Stream> {
 public:
  Stream(OrcaService& service, Duration interval)
      : service_(service), interval_(interval), before_(service.queue_.GetState()) {}

  // Writes the first report after one interval: there is nothing to say about a moment.
  void Wait() {
    service_.queue_.RunAt(Now() + interval_, [self = weak_from_this()] {
      if (const std::shared_ptr<Stream> stream = self.lock()) stream->Report();
    });
  }

  void OnWriteDone(bool ok) override {
    {
      const std::lock_guard lock(mutex_);
      writing_ = false;
      stopping_ = stopping_ || !ok;
    }
    if (!FinishIfStopping()) Wait();
  }

  void OnCancel() override { Stop(); }
  void OnDone() override { service_.Forget(shared_from_this()); }

  void Stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    FinishIfStopping();
  }

 private:
  // gRPC may call back from within Finish and StartWrite: never under the lock.
  bool FinishIfStopping() {
    {
      const std::lock_guard lock(mutex_);
      if (!stopping_) return false;
      if (writing_ || finished_) return true;
      finished_ = true;
    }
    Finish(grpc::Status::OK);
    return true;
  }

  void Report() {
    const WorkQueue::State state = service_.queue_.GetState();
    const TimePoint now = Now();
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      writing_ = true;
    }
    const double seconds = std::chrono::duration<double>(now - since_).count();
    const double busy =
        std::chrono::duration<double>(state.usage.busy - before_.usage.busy).count();
    report_.set_cpu_utilization(busy / (seconds * state.workers));
    report_.set_application_utilization(report_.cpu_utilization());
    report_.set_rps_fractional((state.usage.ended - before_.usage.ended) / seconds);
    before_ = state;
    since_ = now;
    StartWrite(&report_);
  }

  OrcaService& service_;
  const Duration interval_;
  WorkQueue::State before_;
  TimePoint since_ = Now();
  OrcaLoadReport report_;
  std::mutex mutex_;
  bool writing_ = false;
  bool stopping_ = false;
  bool finished_ = false;
};

grpc::ServerWriteReactor<OrcaLoadReport>* OrcaService::StreamCoreMetrics(
    grpc::CallbackServerContext*, const OrcaLoadReportRequest* request) {
  const auto stream = std::make_shared<Stream>(*this, IntervalOf(*request));
  bool stopping = false;
  {
    const std::lock_guard lock(mutex_);
    streams_.insert(stream);
    stopping = stopping_;
  }
  if (stopping) {
    stream->Stop();
  } else {
    stream->Wait();
  }
  return stream.get();
}

void OrcaService::Forget(const std::shared_ptr<Stream>& stream) {
  const std::lock_guard lock(mutex_);
  streams_.erase(stream);
}

void OrcaService::Stop() {
  std::set<std::shared_ptr<Stream>> streams;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    streams = streams_;
  }
  for (const std::shared_ptr<Stream>& stream : streams) stream->Stop();
}

}  // namespace unpin::gen
