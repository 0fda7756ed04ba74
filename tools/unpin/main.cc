// SPDX-License-Identifier: Apache-2.0
// unpin: the command line of unpind.
#include <grpcpp/grpcpp.h>

#include <iostream>

#include "tools/unpin/cli.h"

int main(int argc, char** argv) {
  const auto connect =
      [](const std::string& socket) -> std::unique_ptr<unpin::v1::Admin::StubInterface> {
    return unpin::v1::Admin::NewStub(
        grpc::CreateChannel("unix:" + socket, grpc::InsecureChannelCredentials()));
  };
  return unpin::RunCli({argv + 1, argv + argc}, {std::cout, std::cerr, connect});
}
