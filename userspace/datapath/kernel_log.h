// SPDX-License-Identifier: Apache-2.0
// What libbpf and libxdp would print, kept instead: the verifier's words belong into the error.
#pragma once

#include <string>

namespace unpin {

// Both libraries print through one function pointer a process: one KernelLog at a time, on one thread.
class KernelLog {
 public:
  KernelLog();
  ~KernelLog();
  KernelLog(const KernelLog&) = delete;
  KernelLog& operator=(const KernelLog&) = delete;

  // The last lines of what was said, each indented, behind a line break; empty if nothing was said.
  std::string Tail() const;

 private:
  std::string text_;
};

}  // namespace unpin
