// SPDX-License-Identifier: Apache-2.0
// Typed views of BPF maps. A view borrows the map: the Program that loaded it must outlive it.
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "userspace/base/status.h"

namespace unpin {

// A value that the data plane guards with a spin lock is read and written whole, under that lock.
template <typename Value>
inline constexpr uint64_t kLockFlag = requires(Value v) {
  v.lock;
}
? BPF_F_LOCK : 0;

template <typename Key, typename Value>
class BpfMap {
 public:
  // FailedPrecondition if the map's key or value size is not that of the C++ types. `map` must be loaded.
  static absl::StatusOr<BpfMap> Open(const bpf_map* map) {
    const char* name = bpf_map__name(map);
    if (bpf_map__key_size(map) != sizeof(Key) || bpf_map__value_size(map) != sizeof(Value)) {
      return absl::FailedPreconditionError(
          absl::StrCat("map ", name, ": key of ", bpf_map__key_size(map), " and value of ",
                       bpf_map__value_size(map), " bytes, but this build expects ", sizeof(Key),
                       " and ", sizeof(Value)));
    }
    return BpfMap(name, bpf_map__fd(map), bpf_map__max_entries(map));
  }

  // NotFound if the key is absent.
  absl::StatusOr<Value> Get(const Key& key) const {
    Value value = {};
    if (bpf_map_lookup_elem_flags(fd_, &key, &value, kLockFlag<Value>) == 0) return value;
    return ErrnoStatus(errno, absl::StrCat("look up in map ", name_));
  }

  absl::Status Put(const Key& key, const Value& value) const {
    if (bpf_map_update_elem(fd_, &key, &value, BPF_ANY | kLockFlag<Value>) == 0)
      return absl::OkStatus();
    const int error = errno;
    return ErrnoStatus(error, error == E2BIG ? absl::StrCat("put into map ", name_, " of ",
                                                            max_entries_, " entries")
                                             : absl::StrCat("put into map ", name_));
  }

  // Deleting an absent key is success: the wished-for state already holds.
  absl::Status Erase(const Key& key) const {
    if (bpf_map_delete_elem(fd_, &key) == 0 || errno == ENOENT) return absl::OkStatus();
    return ErrnoStatus(errno, absl::StrCat("erase from map ", name_));
  }

  // Calls visit(const Key&, const Value&) for every entry, `batch` entries a system call. While the data plane inserts and
  // deletes, an entry that is there throughout is seen at least once.
  template <typename Visit>
  absl::Status ForEach(Visit visit, uint32_t batch = 4096) const {
    // The kernel's cursor: a bucket number for hash maps, a key for arrays.
    std::vector<std::byte> cursor(std::max(sizeof(Key), sizeof(uint32_t)));
    std::vector<Key> keys(batch);
    std::vector<Value> values(batch);
    bool first = true;
    while (true) {
      LIBBPF_OPTS(bpf_map_batch_opts, options, .elem_flags = kLockFlag<Value>);
      auto count = static_cast<uint32_t>(keys.size());
      const bool failed = bpf_map_lookup_batch(fd_, first ? nullptr : cursor.data(), cursor.data(),
                                               keys.data(), values.data(), &count, &options) != 0;
      const int error = failed ? errno : 0;
      if (error ==
          ENOSPC) {  // one hash bucket holds more than fits: nothing was read, the cursor stands
        keys.resize(keys.size() * 2);
        values.resize(values.size() * 2);
        continue;
      }
      if (error != 0 && error != ENOENT)
        return ErrnoStatus(error, absl::StrCat("read map ", name_));
      for (uint32_t i = 0; i < count; ++i) visit(std::as_const(keys[i]), std::as_const(values[i]));
      if (error == ENOENT) return absl::OkStatus();  // that was the last batch
      first = false;
    }
  }

  const std::string& name() const { return name_; }
  uint32_t max_entries() const { return max_entries_; }
  int fd() const { return fd_; }

 private:
  BpfMap(std::string name, int fd, uint32_t max_entries)
      : name_(std::move(name)), fd_(fd), max_entries_(max_entries) {}

  std::string name_;
  int fd_;
  uint32_t max_entries_;
};

// An array with one value for each CPU under each index.
template <typename Value>
class BpfPerCpuArray {
  static_assert(sizeof(Value) % 8 == 0, "the kernel pads each CPU's value to 8 bytes");

 public:
  static absl::StatusOr<BpfPerCpuArray> Open(const bpf_map* map) {
    const char* name = bpf_map__name(map);
    if (bpf_map__type(map) != BPF_MAP_TYPE_PERCPU_ARRAY ||
        bpf_map__value_size(map) != sizeof(Value)) {
      return absl::FailedPreconditionError(absl::StrCat(
          "map ", name, ": is not a per-CPU array of ", sizeof(Value), " byte values"));
    }
    const int cpus = libbpf_num_possible_cpus();
    if (cpus < 0) return ErrnoStatus(-cpus, "count the possible CPUs");
    return BpfPerCpuArray(name, bpf_map__fd(map), static_cast<size_t>(cpus));
  }

  // One value a possible CPU.
  absl::StatusOr<std::vector<Value>> Get(uint32_t index) const {
    std::vector<Value> values(cpus_);
    if (bpf_map_lookup_elem(fd_, &index, values.data()) == 0) return values;
    return ErrnoStatus(errno, absl::StrCat("look up in map ", name_));
  }

 private:
  BpfPerCpuArray(std::string name, int fd, size_t cpus)
      : name_(std::move(name)), fd_(fd), cpus_(cpus) {}

  std::string name_;
  int fd_;
  size_t cpus_;
};

}  // namespace unpin
