// SPDX-License-Identifier: Apache-2.0
#include "userspace/admin/socket_path.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "userspace/base/status.h"

namespace unpin {
namespace {

// 0 if somebody listens on `path`, else errno of the attempt to connect.
int TryConnect(const std::string& path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return errno;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int result =
      connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 ? 0 : errno;
  close(fd);
  return result;
}

absl::Status MakeFolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path();
  if (folder.empty() || mkdir(folder.c_str(), 0755) == 0 || errno == EEXIST) {
    return absl::OkStatus();
  }
  return ErrnoStatus(errno, absl::StrCat("create folder ", folder, " of the socket"));
}

absl::Status RemoveStale(const std::string& path) {
  const int error = TryConnect(path);
  // EAGAIN: it listens, and its backlog is full.
  if (error == 0 || error == EAGAIN) {
    return absl::FailedPreconditionError(absl::StrCat(
        "serve on ", path, ": another process serves there (is unpind running already?)"));
  }
  if (error != ECONNREFUSED) return ErrnoStatus(error, absl::StrCat("connect to ", path));
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return ErrnoStatus(errno, absl::StrCat("remove stale socket ", path));
}

}  // namespace

absl::Status ClaimSocketPath(const std::string& path) {
  constexpr size_t kMax = sizeof(sockaddr_un::sun_path) - 1;
  if (path.empty() || path.size() > kMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("serve on \"", path, "\": a socket's path has 1 to ", kMax, " bytes"));
  }
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return MakeFolderOf(path);
    return ErrnoStatus(errno, absl::StrCat("look at ", path));
  }
  if (!S_ISSOCK(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "serve on ", path, ": it exists and is not a socket; remove it or choose another path"));
  }
  return RemoveStale(path);
}

}  // namespace unpin
