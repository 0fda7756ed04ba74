// SPDX-License-Identifier: Apache-2.0
// A network and mount namespace of the test's own, with a BPF file system: all of it ends with the process.
#pragma once

#include <string>

#include <gtest/gtest.h>

namespace unpin {

// Use as `int main` does: testing::AddGlobalTestEnvironment(new Sandbox). Needs root.
class Sandbox : public testing::Environment {
 public:
  void SetUp() override;

  // The mount point of the BPF file system.
  static const std::string& bpffs();
};

// A directory for one test's pins that does not exist yet.
std::string FreshPinDirectory();

// Runs a shell command; fails the test if it does not exit with 0.
void Run(const std::string& command);

// veth pair `name` and `name`p, both up, forwarding on for `name`.
void MakeVeth(const std::string& name);
void RemoveInterface(const std::string& name);

// The XDP program on an interface: 0 if there is none.
unsigned AttachedProgramId(const std::string& interface);

// A one-instruction XDP program (XDP_PASS) named `name`; the caller closes it.
int LoadPassProgram(const char* name);

}  // namespace unpin
