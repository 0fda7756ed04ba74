// SPDX-License-Identifier: Apache-2.0
// The command line of unpin as a function: nouns show, verbs change.
#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "proto/unpin/v1/admin.grpc.pb.h"

namespace unpin {

struct CliEnvironment {
  std::ostream& out;
  std::ostream& err;
  std::function<std::unique_ptr<v1::Admin::StubInterface>(const std::string& socket)> connect;
};

// `arguments` without the program's name. 0: done, 1: refused or failed, 2: wrong usage.
int RunCli(const std::vector<std::string>& arguments, const CliEnvironment& environment);

}  // namespace unpin
