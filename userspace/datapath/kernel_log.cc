// SPDX-License-Identifier: Apache-2.0
#include "userspace/datapath/kernel_log.h"

#include <bpf/libbpf.h>
#include <xdp/libxdp.h>

#include <cstdarg>
#include <cstdio>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace unpin {
namespace {

constexpr size_t kTailLines = 15;

// The libraries' callbacks take no context.
thread_local std::string* current = nullptr;

void Append(const char* format, va_list arguments) {
  if (current == nullptr) return;
  va_list again;
  va_copy(again, arguments);
  const int length = vsnprintf(nullptr, 0, format, again);
  va_end(again);
  if (length <= 0) return;
  const size_t begin = current->size();
  current->resize(begin + static_cast<size_t>(length) + 1);
  vsnprintf(current->data() + begin, static_cast<size_t>(length) + 1, format, arguments);
  current->pop_back();
}

int PrintLibbpf(libbpf_print_level level, const char* format, va_list arguments) {
  if (level == LIBBPF_WARN) Append(format, arguments);
  return 0;
}

int PrintLibxdp(libxdp_print_level level, const char* format, va_list arguments) {
  if (level == LIBXDP_WARN) Append(format, arguments);
  return 0;
}

}  // namespace

KernelLog::KernelLog() {
  current = &text_;
  libbpf_set_print(PrintLibbpf);
  libxdp_set_print(PrintLibxdp);
}

KernelLog::~KernelLog() { current = nullptr; }

std::string KernelLog::Tail() const {
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(text_, '\n', absl::SkipWhitespace())) {
    lines.emplace_back(line);
  }
  std::string tail;
  const size_t first = lines.size() > kTailLines ? lines.size() - kTailLines : 0;
  for (size_t i = first; i < lines.size(); ++i) absl::StrAppend(&tail, "\n  ", lines[i]);
  return tail;
}

}  // namespace unpin
