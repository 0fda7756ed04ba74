// SPDX-License-Identifier: Apache-2.0
#include "userspace/datapath/bpffs.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include <cerrno>
#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "userspace/base/status.h"

namespace unpin {
namespace {

absl::Status CheckIsBpffs(const std::string& directory) {
  // The directory itself may not exist yet: then its parent decides.
  std::string existing = directory;
  struct statfs information = {};
  while (statfs(existing.c_str(), &information) != 0) {
    if (errno != ENOENT || existing.empty() || existing == "/") {
      return ErrnoStatus(errno, absl::StrCat("look at ", existing));
    }
    existing = std::filesystem::path(existing).parent_path().string();
  }
  if (information.f_type == BPF_FS_MAGIC) return absl::OkStatus();
  const std::string parent = std::filesystem::path(directory).parent_path().string();
  return absl::FailedPreconditionError(absl::StrCat(
      directory, " is not on a BPF file system: mount one with `mount -t bpf bpf ", parent,
      "` (and in a network namespace enter with `nsenter --net=`: `ip netns exec` hides it)"));
}

absl::Status MakeDirectory(const std::string& directory) {
  const std::string parent = std::filesystem::path(directory).parent_path().string();
  for (const std::string& path : {parent, directory}) {
    if (mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) continue;
    if (errno == EACCES || errno == EPERM) {
      return absl::PermissionDeniedError(absl::StrCat(
          "make ", path, ": not permitted; run as root, and without dots in the name"));
    }
    return ErrnoStatus(errno, absl::StrCat("make ", path));
  }
  return absl::OkStatus();
}

absl::Status Lock(const UniqueFd& fd, const std::string& directory) {
  if (flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return absl::OkStatus();
  if (errno != EWOULDBLOCK) return ErrnoStatus(errno, absl::StrCat("lock ", directory));
  return absl::FailedPreconditionError(absl::StrCat(
      directory, " is in use by another unpind: stop it first, or give this one another --bpffs"));
}

// False if the directory was removed, or made anew, between opening and locking it.
bool IsStillAt(const UniqueFd& fd, const std::string& directory) {
  struct stat opened = {}, now = {};
  return fstat(fd.get(), &opened) == 0 && stat(directory.c_str(), &now) == 0 &&
         opened.st_ino == now.st_ino;
}

}  // namespace

absl::StatusOr<UniqueFd> OpenBpffsDirectory(const std::string& directory) {
  if (absl::Status status = CheckIsBpffs(directory); !status.ok()) return status;
  while (true) {
    if (absl::Status status = MakeDirectory(directory); !status.ok()) return status;
    UniqueFd fd(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd.valid() && errno == ENOENT) continue;  // an agent that has just ended took it away
    if (!fd.valid()) return ErrnoStatus(errno, absl::StrCat("open ", directory));
    if (absl::Status status = Lock(fd, directory); !status.ok()) return status;
    if (IsStillAt(fd, directory)) return fd;
  }
}

void RemoveEmptyBpffsDirectory(const std::string& directory) {
  RemoveEmptyLinksDirectory(directory);
  rmdir(directory.c_str());
}

void RemoveEmptyLinksDirectory(const std::string& directory) {
  rmdir(absl::StrCat(directory, "/links").c_str());
}

absl::StatusOr<UniqueFd> OpenPin(const std::string& path) {
  UniqueFd fd(bpf_obj_get(path.c_str()));
  if (!fd.valid()) return ErrnoStatus(errno, absl::StrCat("open ", path));
  return fd;
}

absl::StatusOr<std::vector<std::string>> ListPins(const std::string& directory) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(opendir(directory.c_str()), closedir);
  if (!stream) {
    if (errno == ENOENT) return names;
    return ErrnoStatus(errno, absl::StrCat("list ", directory));
  }
  while (const dirent* entry = readdir(stream.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  return names;
}

absl::Status RemovePin(const std::string& path) {
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return ErrnoStatus(errno, absl::StrCat("remove ", path));
}

std::string LinkPinPath(const std::string& directory, absl::string_view interface) {
  return absl::StrCat(directory, "/links/", absl::StrReplaceAll(interface, {{".", ":"}}));
}

std::string InterfaceOfLinkPin(absl::string_view name) {
  return absl::StrReplaceAll(name, {{":", "."}});
}

}  // namespace unpin
