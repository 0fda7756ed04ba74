// SPDX-License-Identifier: Apache-2.0
#include "userspace/admin/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "userspace/admin/admin_service.h"
#include "userspace/admin/socket_path.h"
#include "userspace/base/status.h"

namespace unpin {
namespace {

class Server final : public AdminServer {
 public:
  explicit Server(Operations& operations) : service_(operations) {}
  ~Server() override { Stop(Duration::zero()); }

  bool Serve(const std::string& path) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(absl::StrCat("unix:", path), grpc::InsecureServerCredentials());
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) return false;
    // "" is the server as a whole and SERVING by default; a service is unknown until it is named.
    server_->GetHealthCheckService()->SetServingStatus(v1::Admin::service_full_name(), true);
    return true;
  }

  void Stop(Duration grace) override {
    if (server_ == nullptr) return;
    service_.Stop();
    server_->Shutdown(std::chrono::system_clock::now() + grace);
    server_->Wait();
    server_.reset();
  }

 private:
  AdminService service_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<AdminServer>> AdminServer::Start(Operations& operations,
                                                                const std::string& path) {
  // gRPC itself would silently take the socket away from whoever listens on it.
  if (absl::Status status = ClaimSocketPath(path); !status.ok()) return status;

  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  auto server = std::make_unique<Server>(operations);
  if (!server->Serve(path)) {
    return absl::UnavailableError(
        absl::StrCat("serve on ", path, ": gRPC could not bind it (is its folder writable?)"));
  }
  if (chmod(path.c_str(), 0660) != 0) {
    return ErrnoStatus(errno, absl::StrCat("set the mode of ", path));
  }
  return server;
}

}  // namespace unpin
