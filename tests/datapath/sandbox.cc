// SPDX-License-Identifier: Apache-2.0
#include "tests/datapath/sandbox.h"

#include <linux/bpf.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <cerrno>
#include <cstring>

namespace unpin {
namespace {

std::string* mount_point = nullptr;

}  // namespace

void Sandbox::SetUp() {
  ASSERT_EQ(geteuid(), 0u) << "this test needs root";
  ASSERT_EQ(unshare(CLONE_NEWNET | CLONE_NEWNS), 0) << strerror(errno);
  // Nothing mounted here may reach the host.
  ASSERT_EQ(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0) << strerror(errno);
  static std::string path = "/run";
  ASSERT_EQ(mount("tmpfs", path.c_str(), "tmpfs", 0, nullptr), 0) << strerror(errno);
  path += "/bpf";
  Run("mkdir " + path);
  ASSERT_EQ(mount("bpf", path.c_str(), "bpf", 0, nullptr), 0) << strerror(errno);
  mount_point = &path;
  Run("ip link set lo up");
}

const std::string& Sandbox::bpffs() { return *mount_point; }

std::string FreshPinDirectory() {
  static int count = 0;
  return Sandbox::bpffs() + "/unpin" + std::to_string(++count);
}

void Run(const std::string& command) { ASSERT_EQ(system(command.c_str()), 0) << command; }

void MakeVeth(const std::string& name) {
  Run("ip link add " + name + " type veth peer name " + name + "p");
  Run("ip link set " + name + " up && ip link set " + name + "p up");
  Run("sysctl -qw net/ipv4/conf/" + name + "/forwarding=1");
}

void RemoveInterface(const std::string& name) { Run("ip link del " + name); }

unsigned AttachedProgramId(const std::string& interface) {
  unsigned id = 0;
  const int ifindex = static_cast<int>(if_nametoindex(interface.c_str()));
  EXPECT_EQ(bpf_xdp_query_id(ifindex, 0, &id), 0) << interface;
  return id;
}

int LoadPassProgram(const char* name) {
  const bpf_insn code[] = {
      {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = XDP_PASS},
      {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0}};
  const int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, name, "GPL", code, 2, nullptr);
  EXPECT_GE(fd, 0) << strerror(errno);
  return fd;
}

}  // namespace unpin

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::AddGlobalTestEnvironment(new unpin::Sandbox);
  return RUN_ALL_TESTS();
}
