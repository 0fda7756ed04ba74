// SPDX-License-Identifier: Apache-2.0
#include "userspace/datapath/attach.h"

#include <linux/if_link.h>
#include <net/if.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/datapath/sandbox.h"
#include "userspace/datapath/bpffs.h"
#include "userspace/datapath/dispatcher.h"

namespace unpin {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class AttachTest : public testing::Test {
 protected:
  void SetUp() override {
    MakeVeth("lda");
    MakeVeth("ldb");
  }
  void TearDown() override {
    EXPECT_TRUE(DetachEverything(options_.bpffs).ok());
    RemoveInterface("lda");
    RemoveInterface("ldb");
  }

  absl::StatusOr<Program> Load() const { return Program::Load(options_); }

  // An agent's life: attach, die, leave everything in the kernel.
  void AttachAndDie(const std::vector<std::string>& interfaces) {
    const auto program = Load();
    ASSERT_TRUE(program.ok()) << program.status();
    const auto attachments = Attachments::Attach(*program, interfaces);
    ASSERT_TRUE(attachments.ok()) << attachments.status();
  }

  ProgramOptions options_ = {.bpffs = FreshPinDirectory(), .connections = 1000};
};

TEST_F(AttachTest, IsNativeOnVethAndOutlivesTheAgent) {
  {
    const auto program = Load();
    ASSERT_TRUE(program.ok()) << program.status();
    const auto attachments = Attachments::Attach(*program, {"lda", "ldb"});
    ASSERT_TRUE(attachments.ok()) << attachments.status();
    EXPECT_THAT(attachments->warnings(), IsEmpty());
    ASSERT_EQ(attachments->list().size(), 2u);
    EXPECT_TRUE(attachments->list()[0].native);
    EXPECT_FALSE(attachments->list()[0].adopted);
  }
  EXPECT_NE(AttachedProgramId("lda"), 0u);
  EXPECT_NE(AttachedProgramId("ldb"), 0u);
}

TEST_F(AttachTest, ANewAgentPutsItsOwnProgramInPlace) {
  AttachAndDie({"lda"});
  const unsigned before = AttachedProgramId("lda");
  const auto program = Load();
  ASSERT_TRUE(program.ok()) << program.status();
  auto attachments = Attachments::Attach(*program, {"lda"});
  ASSERT_TRUE(attachments.ok()) << attachments.status();
  EXPECT_TRUE(attachments->list()[0].adopted);
  EXPECT_TRUE(attachments->list()[0].native);
  EXPECT_NE(AttachedProgramId("lda"), before);
  EXPECT_THAT(attachments->CheckAgain(), IsEmpty());
}

TEST_F(AttachTest, LetsGoOfAnInterfaceThatIsNoLongerConfigured) {
  AttachAndDie({"lda", "ldb"});
  const auto program = Load();
  ASSERT_TRUE(program.ok()) << program.status();
  const auto attachments = Attachments::Attach(*program, {"lda"});
  ASSERT_TRUE(attachments.ok()) << attachments.status();
  EXPECT_THAT(attachments->warnings(), ElementsAre(HasSubstr("ldb")));
  EXPECT_NE(AttachedProgramId("lda"), 0u);
  EXPECT_EQ(AttachedProgramId("ldb"), 0u);
}

TEST_F(AttachTest, AnInterfaceMadeAnewIsAttachedAnew) {
  AttachAndDie({"lda"});
  RemoveInterface("lda");
  MakeVeth("lda");
  const auto program = Load();
  ASSERT_TRUE(program.ok()) << program.status();
  const auto attachments = Attachments::Attach(*program, {"lda"});
  ASSERT_TRUE(attachments.ok()) << attachments.status();
  EXPECT_FALSE(attachments->list()[0].adopted);
  EXPECT_NE(AttachedProgramId("lda"), 0u);
}

TEST_F(AttachTest, AMissingInterfaceIsNamedAndNothingIsAttached) {
  const auto program = Load();
  ASSERT_TRUE(program.ok()) << program.status();
  const absl::Status status = Attachments::Attach(*program, {"lda", "ldnone"}).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("ldnone"));
  EXPECT_EQ(AttachedProgramId("lda"), 0u);
}

TEST_F(AttachTest, AnInterfaceNamedTwiceIsRefusedBeforeAnyIsTouched) {
  const auto program = Load();
  ASSERT_TRUE(program.ok()) << program.status();
  const absl::Status status = Attachments::Attach(*program, {"lda", "lda"}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("lda"));
  EXPECT_EQ(AttachedProgramId("lda"), 0u);
  const auto pins = ListPins(options_.bpffs + "/links");
  ASSERT_TRUE(pins.ok());
  EXPECT_THAT(*pins, IsEmpty());
}

TEST_F(AttachTest, AForeignProgramIsRefusedByNameAndStays) {
  const int foreign = LoadPassProgram("someone_else");
  const int ifindex = static_cast<int>(if_nametoindex("ldb"));
  ASSERT_EQ(bpf_xdp_attach(ifindex, foreign, XDP_FLAGS_DRV_MODE, nullptr), 0);
  close(foreign);
  const unsigned id = AttachedProgramId("ldb");

  const auto program = Load();
  ASSERT_TRUE(program.ok()) << program.status();
  const absl::Status status = Attachments::Attach(*program, {"lda", "ldb"}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), AllOf(HasSubstr("interface ldb"), HasSubstr("someone_else"),
                                      HasSubstr("id " + std::to_string(id))));
  EXPECT_EQ(AttachedProgramId("lda"), 0u);
  EXPECT_EQ(AttachedProgramId("ldb"), id);
}

TEST_F(AttachTest, ForwardingMustBeOn) {
  unpin::Run("sysctl -qw net/ipv4/conf/ldb/forwarding=0");
  const auto program = Load();
  ASSERT_TRUE(program.ok()) << program.status();
  const absl::Status status = Attachments::Attach(*program, {"lda", "ldb"}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("sysctl -w net/ipv4/conf/ldb/forwarding=1"));
  EXPECT_EQ(AttachedProgramId("lda"), 0u);
}

TEST_F(AttachTest, AnMtuBeyondOnePageIsRefused) {
  unpin::Run("ip link set ldb mtu 9000");
  const auto program = Load();
  ASSERT_TRUE(program.ok()) << program.status();
  const absl::Status status = Attachments::Attach(*program, {"ldb"}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), AllOf(HasSubstr("9000"), HasSubstr("ip link set dev ldb mtu")));
}

TEST_F(AttachTest, TheLargestAllowedMtuIsTakenNatively) {
  unpin::Run("ip link set ldb mtu " + std::to_string(kMaxMtu) + " && ip link set ldbp mtu " +
             std::to_string(kMaxMtu));
  const auto program = Load();
  ASSERT_TRUE(program.ok()) << program.status();
  const auto attachments = Attachments::Attach(*program, {"ldb"});
  ASSERT_TRUE(attachments.ok()) << attachments.status();
  EXPECT_TRUE(attachments->list()[0].native);
}

TEST_F(AttachTest, FallsBackToGenericModeAndSaysWhyInTheDriversWords) {
  unpin::Run(
      "ip link set ldbp mtu 9000");  // a veth refuses XDP if its peer may send more than a page
  const auto program = Load();
  ASSERT_TRUE(program.ok()) << program.status();
  const auto attachments = Attachments::Attach(*program, {"ldb"});
  ASSERT_TRUE(attachments.ok()) << attachments.status();
  EXPECT_FALSE(attachments->list()[0].native);
  ASSERT_FALSE(attachments->warnings().empty());
  EXPECT_THAT(attachments->warnings().back(), AllOf(HasSubstr("GENERIC"), HasSubstr("Peer MTU")));
}

TEST_F(AttachTest, TroublesAreToldOnce) {
  const auto program = Load();
  ASSERT_TRUE(program.ok()) << program.status();
  auto attachments = Attachments::Attach(*program, {"lda"});
  ASSERT_TRUE(attachments.ok()) << attachments.status();
  EXPECT_THAT(attachments->CheckAgain(), IsEmpty());
  unpin::Run("sysctl -qw net/ipv4/conf/lda/forwarding=0");
  EXPECT_THAT(attachments->CheckAgain(), ElementsAre(HasSubstr("forwarding")));
  EXPECT_THAT(attachments->CheckAgain(), IsEmpty());
  unpin::Run("sysctl -qw net/ipv4/conf/lda/forwarding=1");
  EXPECT_THAT(attachments->CheckAgain(), IsEmpty());
  unpin::Run("sysctl -qw net/ipv4/conf/lda/forwarding=0");
  EXPECT_THAT(attachments->CheckAgain(), ElementsAre(HasSubstr("forwarding")));
}

TEST_F(AttachTest, ALostInterfaceIsTold) {
  const auto program = Load();
  ASSERT_TRUE(program.ok()) << program.status();
  auto attachments = Attachments::Attach(*program, {"lda"});
  ASSERT_TRUE(attachments.ok()) << attachments.status();
  RemoveInterface("lda");
  EXPECT_THAT(attachments->CheckAgain(), ElementsAre(HasSubstr("lda")));
  MakeVeth("lda");
  EXPECT_THAT(attachments->CheckAgain(), ElementsAre(HasSubstr("made anew")));
}

TEST_F(AttachTest, DetachTakesTheProgramOffAtOnce) {
  const auto program = Load();
  ASSERT_TRUE(program.ok()) << program.status();
  auto attachments = Attachments::Attach(*program, {"lda", "ldb"});
  ASSERT_TRUE(attachments.ok()) << attachments.status();
  EXPECT_TRUE(attachments->Detach().ok());
  EXPECT_EQ(AttachedProgramId("lda"), 0u);
  EXPECT_EQ(AttachedProgramId("ldb"), 0u);
}

TEST_F(AttachTest, DetachEverythingNeedsNoAgentAndLeavesNoPin) {
  AttachAndDie({"lda"});
  const absl::Status status = DetachEverything(options_.bpffs);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(AttachedProgramId("lda"), 0u);
  const auto pins = ListPins(options_.bpffs);
  ASSERT_TRUE(pins.ok());
  EXPECT_THAT(*pins, Each("links"));
}

TEST_F(AttachTest, DetachEverythingLeavesARunningAgentAlone) {
  const auto program = Load();
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_TRUE(absl::IsFailedPrecondition(DetachEverything(options_.bpffs)));
}

TEST_F(AttachTest, AnInterfaceNameMayHoldADot) {
  unpin::Run(
      "ip link add lda.100 type veth peer name lda-peer && ip link set lda.100 up && ip link set "
      "lda-peer up");
  unpin::Run("sysctl -qw net/ipv4/conf/lda.100/forwarding=1");
  const auto program = Load();
  ASSERT_TRUE(program.ok()) << program.status();
  auto attachments = Attachments::Attach(*program, {"lda.100"});
  ASSERT_TRUE(attachments.ok()) << attachments.status();
  EXPECT_NE(AttachedProgramId("lda.100"), 0u);
  EXPECT_TRUE(attachments->Detach().ok());
  EXPECT_EQ(AttachedProgramId("lda.100"), 0u);
}

// Needs a kernel that takes dispatchers; the virtual machine tests run it on two.
TEST_F(AttachTest, LivesBesideAnotherProgramThroughTheDispatcher) {
  if (!KernelTakesDispatchers()) GTEST_SKIP() << "this kernel refuses BPF_PROG_TYPE_EXT";
  unpin::Run("mkdir -p /sys/fs/bpf; mountpoint -q /sys/fs/bpf || mount -t bpf bpf /sys/fs/bpf");
  unpin::Run(
      "xdp-loader load -m native ldb /usr/lib/x86_64-linux-gnu/bpf/xdpfilt_alw_all.o -p "
      "/sys/fs/bpf");
  const auto interface = FindInterface("ldb");
  ASSERT_TRUE(interface.ok());
  ASSERT_EQ(DispatchedPrograms(*interface).value_or(std::vector<uint32_t>()).size(), 1u);
  for (int start = 0; start < 2; ++start) {
    const auto program = Load();
    ASSERT_TRUE(program.ok()) << program.status();
    const auto attachments = Attachments::Attach(*program, {"lda", "ldb"});
    ASSERT_TRUE(attachments.ok()) << attachments.status();
    for (const Attachment& attachment : attachments->list()) {
      EXPECT_EQ(attachment.way, Attachment::Way::kDispatcher);
      EXPECT_EQ(attachment.adopted, start == 1);
    }
    EXPECT_EQ(DispatchedPrograms(*interface).value_or(std::vector<uint32_t>()).size(), 2u);
  }
  const absl::Status status = DetachEverything(options_.bpffs);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(DispatchedPrograms(*interface).value_or(std::vector<uint32_t>()).size(), 1u);
  EXPECT_EQ(AttachedProgramId("lda"), 0u);
}

}  // namespace
}  // namespace unpin
