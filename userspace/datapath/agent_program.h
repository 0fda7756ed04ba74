// SPDX-License-Identifier: Apache-2.0
// Runs one of the agent's own programs (goaway.bpf.c): its frame is the argument struct, read and written.
#pragma once

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "userspace/base/status.h"

namespace unpin {

// On success `args` is what the program left in it.
template <typename Args>
absl::Status RunAgentProgram(const bpf_program* program, Args& args) {
  LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = &args, .data_out = &args,
              .data_size_in = sizeof(args), .data_size_out = sizeof(args));
  if (bpf_prog_test_run_opts(bpf_program__fd(program), &options) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, absl::StrCat("run program ", bpf_program__name(program)));
}

}  // namespace unpin
