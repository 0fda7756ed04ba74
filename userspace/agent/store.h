// SPDX-License-Identifier: Apache-2.0
// Keeps what the API changed, in one file of the state directory.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "userspace/agent/overrides.h"
#include "userspace/model/ports.h"

namespace unpin {

class FileStore final : public Store {
 public:
  // Makes the directory if need be. No file: nothing was changed yet. FailedPrecondition if the file cannot be
  // understood: it names the file to move away.
  static absl::StatusOr<std::unique_ptr<FileStore>> Open(const std::string& directory);

  Desired Merge(const Desired& file) override { return Apply(overrides_, file); }
  void Rebase(const Desired& file) override { base_ = file; }
  absl::Status Save(const Desired& desired) override;

 private:
  FileStore(std::string directory, Overrides overrides)
      : directory_(std::move(directory)), overrides_(std::move(overrides)) {}

  std::string directory_;
  Desired base_;
  Overrides overrides_;
};

}  // namespace unpin
