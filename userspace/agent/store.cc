// SPDX-License-Identifier: Apache-2.0
#include "userspace/agent/store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "userspace/base/status.h"
#include "userspace/base/unique_fd.h"

namespace unpin {
namespace {

std::string FileIn(const std::string& directory) { return directory + "/overrides.yaml"; }

absl::Status WriteSynced(const std::string& path, const std::string& text) {
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640));
  if (!file.valid()) return ErrnoStatus(errno, absl::StrCat("create ", path));
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t n = ::write(file.get(), text.data() + written, text.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, absl::StrCat("write ", path));
    written += static_cast<size_t>(n);
  }
  if (::fsync(file.get()) != 0) return ErrnoStatus(errno, absl::StrCat("sync ", path));
  return absl::OkStatus();
}

absl::Status SyncDirectory(const std::string& directory) {
  const UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || ::fsync(fd.get()) != 0) {
    return ErrnoStatus(errno, absl::StrCat("sync directory ", directory));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<FileStore>> FileStore::Open(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("create state directory ", directory));
  const std::string file = FileIn(directory);
  if (!std::filesystem::exists(file)) {
    return std::unique_ptr<FileStore>(new FileStore(directory, {}));
  }
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  if (!stream) return ErrnoStatus(EIO, absl::StrCat("read ", file));
  absl::StatusOr<Overrides> overrides = ParseOverrides(text.str(), file);
  if (!overrides.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat(overrides.status().message(), "; what the API changed is kept there: mend ",
                     file, ", or move it away to start from the configuration file alone"));
  }
  return std::unique_ptr<FileStore>(new FileStore(directory, *std::move(overrides)));
}

absl::Status FileStore::Save(const Desired& desired) {
  Overrides overrides = Difference(base_, desired);
  const std::string file = FileIn(directory_);
  const std::string fresh = file + ".new";
  if (absl::Status status = WriteSynced(fresh, FormatOverrides(overrides)); !status.ok())
    return status;
  if (::rename(fresh.c_str(), file.c_str()) != 0) {
    return ErrnoStatus(errno, absl::StrCat("rename ", fresh, " to ", file));
  }
  overrides_ = std::move(overrides);
  return SyncDirectory(directory_);
}

}  // namespace unpin
